/*
 * company.h - puts of jobs of keys that wait in company, and what of each key this store has put there by itself
 *
 * A time of company lasts until nothing of it waits. While the server names this store as one of those that count by themselves (lua/company_put.lua),
 * it puts up to LS_REDIS_OWN_JOBS jobs of a key without telling the key; only what is more is counted there. What was sent counts, whatever became of it,
 * and hashes that collide count together: so it may count too many, never too few.
 *
 * Thread safety: as the put, under the admin link; ls_redis_put_company needs none.
 */
#ifndef LADE_STORE_REDIS_COMPANY_H
#define LADE_STORE_REDIS_COMPANY_H

#include <lade/lade.h>

#include "base/base.h"

#define LS_REDIS_OWN_JOBS 8 /* of a key in one time; lua/company_put.lua proves the bound */

struct ls_redis_put_call;
struct ls_redis_company;

/* Whether all jobs of the call may wait in company, and their keys. 0 or -LADE_ENOMEM. */
LADE_CHECKED int ls_redis_put_company(struct ls_redis_put_call *pc, lade_err *err);
/* Sorts the keys into those counted here and the others, before the put is sent. */
void ls_redis_company_count(struct ls_redis_put_call *pc);
/* The answer of the script that is not 0. False: ask once more, all keys are to be counted at the server. */
bool ls_redis_company_note(struct ls_redis_put_call *pc, int64_t answer);
void ls_redis_companies_free(struct ls_redis_company *c);

#endif
