#include "base/err.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"

static void fail_fills_the_error_and_returns_the_code(void **state)
{
    (void)state;
    lade_err err;
    int rc = lb_fail(&err, LADE_EINVAL, "open", "port %d is not a port", 70000);
    assert_int_equal(rc, -LADE_EINVAL);
    assert_int_equal(err.code, -LADE_EINVAL);
    assert_string_equal(err.text, "port 70000 is not a port");
    assert_string_equal(err.where, "open");
    assert_int_equal(lb_fail(NULL, LADE_EIO, "open", "unseen"), -LADE_EIO);
    lb_err_clear(&err);
    assert_int_equal(err.code, 0);
    assert_string_equal(err.text, "");
    lb_err_clear(NULL);
}

static void the_text_is_one_printable_line_and_is_cut(void **state)
{
    (void)state;
    lade_err err;
    (void)lb_fail(&err, LADE_EPROTO, "read",
                  "a\nb\tc\x7f"
                  "d\r");
    assert_string_equal(err.text, "a?b?c?d?");
    char big[2000];
    memset(big, 'x', sizeof(big) - 1);
    big[sizeof(big) - 1] = 0;
    (void)lb_fail(&err, LADE_EPROTO, "read", "%s", big);
    assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
}

static void errno_values_become_codes_that_say_what_to_do(void **state)
{
    (void)state;

    static const struct {
        int errnum;
        enum lade_errno code;
    } row[] = {
        {ENOMEM, LADE_ENOMEM},
        {EACCES, LADE_EACCESS},
        {EROFS, LADE_EACCESS},
        {ENOSPC, LADE_ENOSPACE},
        {ECONNREFUSED, LADE_EUNAVAILABLE},
        {ETIMEDOUT, LADE_EUNAVAILABLE},
        {EMFILE, LADE_EUNAVAILABLE},
        {EIO, LADE_EIO},
        {EBADMSG, LADE_EIO},
    };

    for (size_t i = 0; i < LB_ARRAY_LEN(row); i++) {
        lade_err err;
        assert_int_equal(lb_fail_errno(&err, row[i].errnum, "open", "jobs.db"), -(int)row[i].code);
        assert_memory_equal(err.text, "jobs.db: ", 9);
        assert_non_null(strstr(err.text, strerror(row[i].errnum)));
    }
    lade_err err;
    assert_int_equal(lb_fail_nomem(&err, "put"), -LADE_ENOMEM);
    assert_string_equal(err.text, "out of memory");
}

static void every_result_has_its_name(void **state)
{
    (void)state;
    assert_string_equal(lade_result_name(0), "LADE_DONE");
    assert_string_equal(lade_result_name(LADE_STALE), "LADE_STALE");
    assert_string_equal(lade_result_name(-LADE_EAUTH), "LADE_EAUTH");
    assert_string_equal(lade_result_name(LADE_EAUTH), "LADE_EAUTH");
    for (int code = LADE_DONE; code <= LADE_MISSED; code++)
        assert_memory_equal(lade_result_name(code), "LADE_", 5);
    for (int code = LADE_EINVAL; code <= LADE_ENOSTORE; code++)
        assert_memory_equal(lade_result_name(-code), "LADE_E", 6);
    assert_string_equal(lade_result_name(1000), "unknown");
    assert_string_equal(lade_result_name(-LADE_ENOSTORE - 1), "unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fail_fills_the_error_and_returns_the_code),
        cmocka_unit_test(the_text_is_one_printable_line_and_is_cut),
        cmocka_unit_test(errno_values_become_codes_that_say_what_to_do),
        cmocka_unit_test(every_result_has_its_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
