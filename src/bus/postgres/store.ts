/** The store of the event bus on PostgreSQL, as one worker uses it. Each call is one statement, so one commit. */
import type { Db } from '../../kernel/sql.ts';
import type { BusStore } from '../store.ts';
import * as log from './log-queries.ts';
import * as readers from './reader-queries.ts';

export function postgresBusStore(db: Db, worker: string): BusStore {
  return {
    readState: () => log.readState(db),
    readRevisions: () => log.readRevisions(db),
    readPage: (after, to, limits) => log.readPage(db, after, to, limits),
    readTopics: (range, limits) => log.readTopics(db, range, limits),
    fanOut: (page) => log.fanOut(db, worker, page),
    load: (held) => readers.loadReaders(db, worker, held),
    done: (acks, nowMs) => readers.deliverDone(db, worker, acks, nowMs),
    failed: (attempts, nowMs) => readers.deliverFailed(db, worker, attempts, nowMs),
    cutShort: (batches) => readers.cutShort(db, worker, batches),
    putBack: (held, until) => readers.putBack(db, worker, held, until),
    endIdle: (held) => readers.endIdle(db, worker, held),
    reachBarrier: (held, from, barrier) => readers.reachBarrier(db, worker, held, { from, barrier }),
    recount: (held, range) => readers.recount(db, worker, held, range),
    giveUp: (batch, nowMs) => readers.giveUp(db, worker, batch, nowMs),
    disable: (held, reason, nowMs) => readers.disable(db, worker, held, { reason, nowMs }),
    noteDeliveries: (rows) => readers.noteDeliveries(db, rows),
    countMinutes: (minutes) => readers.countMinutes(db, minutes),
    mend: () => readers.mendErrands(db),
  };
}
