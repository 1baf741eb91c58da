/*
 * event_kit.h - contract: what the cases of events, watching and results share
 *
 * What a stream holds is shown as one line: "waiting:a active:a/1 completed:a/1 drained".
 */
#ifndef LADE_TESTS_CONTRACT_EVENT_KIT_H
#define LADE_TESTS_CONTRACT_EVENT_KIT_H

#include "contract.h"
#include "queue/event.h"

void ct_events_on(const char *queue, uint32_t cap);
lade_events_info ct_events_info(const char *queue);

/* All events behind `after`, read `page` at a time; asserts that they are numbered without holes and that time does not go back. */
const char *ct_events_from(const char *queue, uint64_t after, size_t page);
const char *ct_events(const char *queue);

/* A batch as a client makes it, which a store may keep as one: up to 128 fresh jobs of these ids, of two kinds by turns. */
const char *ct_pack_id(size_t place);
void ct_add_pack(size_t n, const char *const *kind);

#endif
