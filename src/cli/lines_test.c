#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/base.h"
#include "cli/lines.h"

/* A path from which the bytes can be read. */
static int make_file(const void *p, size_t n, char path[32])
{
    int fd = memfd_create("lines", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, p, n), (ssize_t)n);
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    (void)snprintf(path, 32, "/proc/self/fd/%d", fd);
    return fd;
}

static void assert_next(struct cli_lines *l, const char *text, size_t n)
{
    lade_bytes line = {0};
    assert_int_equal(cli_lines_next(l, &line, NULL), 0);
    assert_int_equal(line.size, n);
    if (n)
        assert_memory_equal(line.data, text, n);
}

static void lines_carry_any_byte_and_the_last_needs_no_newline(void **state)
{
    (void)state;
    char path[32];
    struct cli_lines l;
    lade_bytes line;
    int fd = make_file("a\n\n\0\xff\r\nlast", 11, path);
    assert_int_equal(cli_lines_open(&l, path, 100, NULL), 0);
    assert_next(&l, "a", 1);
    assert_next(&l, "", 0);
    assert_next(&l, "\0\xff\r", 3);
    assert_next(&l, "last", 4);
    assert_int_equal(l.number, 4);
    assert_int_equal(cli_lines_next(&l, &line, NULL), LADE_EMPTY);
    cli_lines_close(&l);
    (void)close(fd);
}

static void an_overlong_line_is_refused_and_the_next_one_is_read(void **state)
{
    (void)state;
    static char text[300000];
    char path[32];
    struct cli_lines l;
    lade_bytes line;
    lade_err err = {0};
    memset(text, 'x', sizeof(text));
    text[0] = '\n';
    text[sizeof(text) - 5] = '\n';
    text[sizeof(text) - 4] = 'e';
    text[sizeof(text) - 3] = 'n';
    text[sizeof(text) - 2] = 'd';
    text[sizeof(text) - 1] = '\n';
    int fd = make_file(text, sizeof(text), path);
    assert_int_equal(cli_lines_open(&l, path, 1000, NULL), 0);
    assert_next(&l, "", 0);
    assert_int_equal(cli_lines_next(&l, &line, &err), -LADE_ETOOBIG);
    assert_non_null(strstr(err.text, "line 2 is over 1000 bytes"));
    assert_next(&l, "end", 3);
    assert_int_equal(l.number, 3);
    /* Bounded memory: never much more than one read and one line. */
    assert_true(l.buf.cap < 200000);
    assert_int_equal(cli_lines_next(&l, &line, NULL), LADE_EMPTY);
    cli_lines_close(&l);
    (void)close(fd);
}

static void a_file_over_the_limit_is_refused(void **state)
{
    (void)state;
    char path[32];
    struct lb_buf out;
    lade_err err = {0};
    int fd = make_file("0123456789", 10, path);
    lb_buf_init(&out);
    assert_int_equal(cli_read_file(path, 10, &out, NULL), 0);
    assert_int_equal(out.n, 10);
    lb_buf_clear(&out);
    assert_int_equal(cli_read_file(path, 9, &out, &err), -LADE_ETOOBIG);
    assert_non_null(strstr(err.text, "over 9 bytes"));
    lb_buf_clear(&out);
    assert_int_equal(cli_read_file("/nonexistent/x", 9, &out, &err), -LADE_EINVAL);
    assert_non_null(strstr(err.text, "/nonexistent/x"));
    lb_buf_fini(&out);
    (void)close(fd);
}

static void ids_that_cannot_be_are_refused(void **state)
{
    (void)state;
    char good[] = "abc";
    char bad[LADE_ID_MAX + 2];
    char empty[] = "";
    memset(bad, 'a', sizeof(bad) - 1);
    bad[sizeof(bad) - 1] = '\0';
    char *args[] = {good, bad};
    char *none[] = {empty};
    struct cli_ids ids;
    lade_id id[4];
    size_t n = 99;
    cli_ids_init(&ids, args, 1);
    assert_int_equal(cli_ids_next(&ids, id, 4, &n, NULL), 0);
    assert_int_equal(n, 1);
    assert_string_equal(id[0].text, "abc");
    assert_int_equal(cli_ids_next(&ids, id, 4, &n, NULL), 0);
    assert_int_equal(n, 0);
    cli_ids_init(&ids, args, 2);
    assert_int_equal(cli_ids_next(&ids, id, 4, &n, NULL), -LADE_EINVAL);
    cli_ids_init(&ids, none, 1);
    assert_int_equal(cli_ids_next(&ids, id, 4, &n, NULL), -LADE_EINVAL);
    cli_ids_fini(&ids);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_carry_any_byte_and_the_last_needs_no_newline),
        cmocka_unit_test(an_overlong_line_is_refused_and_the_next_one_is_read),
        cmocka_unit_test(a_file_over_the_limit_is_refused),
        cmocka_unit_test(ids_that_cannot_be_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
