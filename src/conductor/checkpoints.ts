/** Checkpoints of a conductor. `test/chaos` kills processes there. */
import { declareCheckpoints } from '../kernel/checkpoint.ts';

export const { names: conductorCheckpoints, checkpoint } = declareCheckpoints(
  // executions are read, none of their messages is interpreted
  'message.fetched',
  // a message is interpreted, its result is not sent
  'message.executed',
  // the result is about to be sent
  'put.sent',
  // the commit is answered, and nothing has left
  'put.answered',
  // functions are called, and lanes and workers told
  'calls.made',
  // a timer is due, its message is not interpreted
  'timer.due',
  // an execution of a dead conductor is taken over, its calls are not repeated
  'takeover.put',
);
