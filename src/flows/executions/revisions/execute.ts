/**
 * Interprets one message: the next revision of an execution in memory, and all that its commit writes. Pure, and never throws.
 *
 * 1. A message that changes nothing leaves the execution as it is: its commit only deletes the message from the inbox. The message
 *    `continue` always makes a revision, so that a new owner can take over an execution in which nothing happens.
 * 2. A state has at most `maxStateChars` characters. A signal or an operation that would make it larger is refused. The answer of a task
 *    that would is taken as its failure, with the code `too_large`. If that does not help, or if a timer or left-over work makes it too
 *    large, the execution is killed, and fails with that code.
 */
import type { FlowMessage } from '../../../contract/flow-messages.ts';
import type { Circumstances, Execution, FlowRun } from '../../../contract/flows.ts';
import { interpret, type Interpreted } from '../../interpreter/interpret.ts';
import type { FlowError, FlowState, MessageBody } from '../../interpreter/state.ts';
import type { Flow } from '../../language/step.ts';
import { commitOf } from './commit-of-run.ts';
import { deriveId } from './derived-id.ts';
import { withDocument } from '../loaded-flow.ts';
import { charsOf, type Memory, memoryOf, hasMore } from '../memory.ts';
import { launchOf, readBody } from './read-message.ts';
import { noDetails } from './run-details.ts';

/** A whole state, as JSON. It is loaded and kept in memory as a whole. */
const maxStateChars = 16 * 1024 * 1024;

const tooLarge: FlowRun['refused'] = {
  code: 'too_large',
  detail: `the state of an execution has at most ${maxStateChars} characters as JSON`,
};

interface Taken {
  readonly execution: Execution;
  readonly memory: Memory;
  readonly flow: Flow;
  readonly message: FlowMessage;
  readonly how: Circumstances;
}

export function execute(execution: Execution, message: FlowMessage, how: Circumstances): FlowRun {
  try {
    return takeMessage(execution, message, how);
  } catch (error) {
    const detail = error instanceof Error ? error.message : String(error);
    return refuse(execution, message, { code: 'internal', detail });
  }
}

function takeMessage(execution: Execution, message: FlowMessage, how: Circumstances): FlowRun {
  const memory = followed(memoryOf(execution), message);
  const { parsed } = memory.flow;
  if (!parsed.ok) return refuse(execution, message, { code: 'unreadable', detail: parsed.detail });
  const body = readBody(message);
  if (body === undefined)
    return refuse(execution, message, {
      code: 'bad_message',
      detail: `it is not a message of the kind ${message.point}`,
    });
  const taken: Taken = { execution, memory, flow: parsed.flow, message, how };
  const result = interpretFor(taken, body);
  if (result.refused !== null) return refuse(execution, message, result.refused);
  if (isIdle(result, body)) return refuse(execution, message, null);
  const run = commitOf(execution, message, { memory, body, result, how });
  return isTooLarge(run) ? shrink(taken, body, run) : run;
}

/** A fork follows the document of the original. */
function followed(memory: Memory, message: FlowMessage): Memory {
  const fork = message.point === 'launch' && memory.state.counters.visits === 0 ? launchOf(message)?.fork : undefined;
  return fork === undefined ? memory : { ...memory, flow: withDocument(memory.flow, fork.document) };
}

/** The message has no effect. */
function refuse(execution: Execution, message: FlowMessage, refused: FlowRun['refused']): FlowRun {
  return {
    from: execution,
    to: execution,
    message,
    calls: [],
    stops: [],
    more: hasMore(memoryOf(execution).state),
    timers: { set: [], cleared: [] },
    refused,
    sealed: noDetails,
  };
}

function isIdle({ delta, effects }: Interpreted, { point }: MessageBody): boolean {
  return point !== 'continue' && effects.length === 0 && Object.keys(delta).length === 0;
}

function interpretFor(
  { execution: { id }, memory, flow, message, how }: Taken,
  body: MessageBody,
  state: FlowState = memory.state,
): Interpreted {
  const { key, depth } = memory;
  return interpret(
    flow,
    state,
    { id: message.id, body },
    {
      nowMs: how.nowMs,
      seed: how.seed,
      execution: { id, key },
      depth,
      maxMessages: how.maxMessages,
      isSpent: () => how.isSpent(),
      link: (nid, attempt) => how.link({ execution: id, nid, attempt }),
      newId: (nid, attempt) => deriveId(how.nowMs, `${id}/${nid}/${attempt}`),
    },
  );
}

/** The sum of deltas is an upper bound, and counting is only needed beyond it. */
function isTooLarge(run: FlowRun): boolean {
  const memory = memoryOf(run.to);
  if (memory.deltaChars + memory.snapshotChars <= maxStateChars || run.to.over) return false;
  return charsOf(memory.state) > Math.max(maxStateChars, charsOf(memoryOf(run.from).state));
}

function shrink(taken: Taken, body: MessageBody, run: FlowRun): FlowRun {
  const { execution, memory, message, how } = taken;
  const isNew = body.point === 'launch' && !memory.isStored;
  if (body.point === 'signal' || body.point === 'operate' || isNew) return refuse(execution, message, tooLarge);
  if (body.point === 'answer' && body.outcome.kind !== 'cancelled') {
    const outcome = { kind: 'failed', code: 'too_large', message: tooLarge?.detail ?? '', data: null } as const;
    const failed = { ...body, outcome };
    const result = interpretFor(taken, failed);
    const again = commitOf(execution, message, { memory, body: failed, result, how });
    if (!isTooLarge(again)) return again;
  }
  return fail(taken, body, run);
}

/** Ends an execution that cannot go on. Work that is left is dropped, or it would come before the end. */
function fail(taken: Taken, body: MessageBody, { from }: FlowRun): FlowRun {
  const { execution, memory, message, how } = taken;
  const { left } = memory.state;
  const bare = { ...memory.state, left: [] };
  const killed = interpretFor(taken, { point: 'operate', operation: { action: 'kill', nid: null } }, bare);
  const error: FlowError = { ...tooLargeError, node: '0' };
  const ending = { kind: 'failed', error } as const;
  const dropped = left.length === 0 ? {} : { left: { gone: left.map((_, i) => i) } };
  const result = {
    ...killed,
    refused: null,
    state: { ...killed.state, ending },
    delta: { ...killed.delta, ...dropped, ending },
  };
  return { ...commitOf(execution, message, { memory, body, result, how }), from };
}

const tooLargeError = { code: 'too_large', message: tooLarge?.detail ?? '', data: null, isFinal: true } as const;
