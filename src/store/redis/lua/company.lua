-- company.lua - joined behind job.lua: jobs of keys that wait as they came
--
-- While nothing else of a queue is ready and no key is on record (no limit, weight, pause, bucket or job that stands by itself), the jobs of one put are
-- packs like jobs without keys, whatever their keys: in the lists ready:A to ready:I for levels 0 to 8, which are served before all that comes
-- later. Their states have a "k" in front (pack.lua). co counts what came of each key since these lists were empty: at most
-- LQ_TURN_JOBS. Where one leaves its pack its envelope tells its key (FOLD.leave_company). meta.xk is how many wait or run so; meta.ks until when no
-- others join; meta.ka that the next take has to take them apart first.

-- Up to n ready ones get places of their own, in their order. How many.
function K.take_apart(P, letters, n)
    local done = 0
    for at = 1, #letters do
        local letter, list = sub(letters, at, at), {}
        local popped = done < n and pop(P, letter, n - done, 0) or {}
        for i = 1, #popped do
            local job = popped[i]
            local jobs, keys = {}, {}
            for place = job.from, job.to - 1 do
                local id, body = id_at(job.p.name, place), body_of(P, job.p, place)
                local key, k = K.key_of(body), #jobs -- the put has looked: there is one
                jobs[k + 1], jobs[k + 2], keys[k + 1], keys[k + 2] = id, body, id, key
                k = #list
                list[k + 1], list[k + 2], list[k + 3], list[k + 4] = byte(letter) - 65, id, key, false
                done = done + 1
            end
            spread('HSET', P .. 'jobs', jobs, 1, #jobs)
            set_fields(P .. 'key', keys, 1, #keys)
        end
        drop_popped(P, popped)
        K.key_ready(P, list)
    end
    return done
end
