"""gdb commands for programs of liblade-rt, live or a core file: gdb -x tools/rt_gdb.py PROGRAM [CORE | PID]

    lade-tasks           every task: its address, name, where it was started, what it waits for
    lade-bt ADDRESS      where that task is, when it waits (running tasks are the threads: thread apply all bt)
    lade-bt all          the same of every task that waits

The library needs debug information. Frames are followed by their frame pointers, which code built without
-fno-omit-frame-pointer does not keep: it is left out."""
import gdb

FRAMES = 32


def symbol(name, where):
    found = gdb.lookup_static_symbol(name) or gdb.lookup_global_symbol(name)
    if found is None:
        raise gdb.GdbError(f"no symbol {name}: {where} has no debug information, or is not loaded")
    return found.value()


def tasks():
    fiber = symbol("all", "liblade-rt")
    while int(fiber) != 0:
        if fiber["alive"]:
            yield fiber
        fiber = fiber["all_next"]


def text(value):
    return value.string(errors="replace") if int(value) != 0 else "-"


def is_parked(fiber):
    return int(fiber["task"]["go"]) != 0 and int(fiber["stack"]) != 0


def state(fiber):
    waits = str(fiber["waits"].cast(gdb.lookup_type("enum lr_waits")))
    if waits != "LR_WAITS_NOT":
        return f"{waits.removeprefix('LR_WAITS_').lower()} {fiber['waits_on']}"
    return "ready" if is_parked(fiber) or int(fiber["stack"]) == 0 else "running"


def describe(pc):
    block = gdb.block_for_pc(pc)
    while block and block.function is None:
        block = block.superblock
    name = block.function.name if block else gdb.execute(f"info symbol {pc:#x}", to_string=True).split(" in section")[0].strip()
    line = gdb.find_pc_line(pc)
    return f"{name} at {line.symtab.filename}:{line.line}" if line.symtab else name


def frames(fiber):
    """Addresses from the innermost out: lr_ctx_switch left the next instruction and rbp on the stack (ctx.h)."""
    word = gdb.lookup_type("unsigned long").pointer()
    low, high = int(fiber["stack"]["low"]), int(fiber["stack"])
    at = gdb.Value(int(fiber["task"]["go"])).cast(word)
    pc, frame = int(at[0]), int(at[1])
    for _ in range(FRAMES):
        if pc == 0:
            return
        yield pc
        if not low <= frame <= high - 16:
            return
        at = gdb.Value(frame).cast(word)
        pc, frame = int(at[1]), int(at[0])


class Tasks(gdb.Command):
    """Every task of the runtime: address, name, where it was started, what it waits for."""

    def __init__(self):
        super().__init__("lade-tasks", gdb.COMMAND_STATUS)

    def invoke(self, argument, from_tty):
        for fiber in tasks():
            print(f"{int(fiber):#x} {text(fiber['name'])} started at {text(fiber['where'])}: {state(fiber)}")


class Backtrace(gdb.Command):
    """lade-bt ADDRESS | all: where a task that waits is."""

    def __init__(self):
        super().__init__("lade-bt", gdb.COMMAND_STACK)

    def invoke(self, argument, from_tty):
        wanted = None if argument.strip() == "all" else int(gdb.parse_and_eval(argument))
        for fiber in tasks():
            if wanted not in (None, int(fiber)) or (wanted is None and not is_parked(fiber)):
                continue
            print(f"task {int(fiber):#x} {text(fiber['name'])}: {state(fiber)}")
            if not is_parked(fiber):
                print("  it runs: see the threads")
                continue
            for i, pc in enumerate(frames(fiber)):
                print(f"  #{i} {pc:#x} in {describe(pc)}")


Tasks()
Backtrace()
