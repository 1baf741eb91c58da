# cmake -DOUT=x.c -DSYMBOL=name "-DFILES=a;b" -P Embed.cmake: writes the files, joined, as a C array.
set(hex "")
foreach(f ${FILES})
  file(READ ${f} one HEX)
  string(APPEND hex "${one}")
endforeach()
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
string(REGEX REPLACE "(0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,)" "\\1\n" bytes "${bytes}")
file(WRITE ${OUT} "#include <stddef.h>\nextern const char ${SYMBOL}[];\nextern const size_t ${SYMBOL}_len;\nconst char ${SYMBOL}[] = {${bytes}0};\nconst size_t ${SYMBOL}_len = sizeof(${SYMBOL}) - 1;\n")
