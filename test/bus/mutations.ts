/** Rules of the bus, each broken in the database of one world of rivals by a change to one of its functions. */
import { changeFunction, type Mutation } from '../simulation/mutations.ts';

export const mutations: readonly Mutation[] = [
  changeFunction('I8: an errand is removed although events are queued', [
    'end_deliveries',
    'r.queued = 0 or',
    'r.queued >= 0 or',
  ]),
  changeFunction(
    'a write needs no lease',
    ['held_deliveries', "join errand_hold h on h.lease = a.lease and h.worker = p_worker and h.queue = 'main'", ''],
    ['held_deliveries', 'and e.id <@ h.ids', ''],
  ),
  changeFunction('the position of a reader is ignored', ['deliver_done', 'r.pos = a.from_pos and', '']),
  changeFunction('a repeated request is stored again', ['number_bus_events', 'and k.at > v_since', 'and false']),
  changeFunction('the end of a batch is not stored', ['cut_short', 'set batch_end = a.batch_end', 'set pos = r.pos']),
  changeFunction('events are counted by former subscriptions', ['fan_out', 'and revision = p_revision', '']),
  changeFunction('a page is counted twice', ['fan_out', 'and fanned = p_from', '']),
  changeFunction('a strand does not wait for the others', [
    'reach_barrier',
    'and pos < p_barrier and queued > 0',
    'and false',
  ]),
  changeFunction('I7: a move back hides that the terms are younger than the events', [
    'place_readers',
    'set from_seq = v_from',
    'set from_seq = v_from, origin_seq = v_from',
  ]),
];
