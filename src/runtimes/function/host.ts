/**
 * The program of a process that calls the functions of a file, one at a time, for the worker that started it.
 *
 * 1. Everything that a function prints, by its `log`, by `console` or by the process's own streams, goes to the log of its run
 *    only. Output after the end of the call goes to the worker's own output.
 * 2. It writes synchronously: output is not lost, however the process ends, and a function that prints faster than its output can
 *    be stored is slowed down.
 * 3. An uncaught exception is the failure of the run that caused it, and ends the process. If that run has ended, no other run
 *    fails because of it: it goes to the worker's own output, and the process gets no more calls.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { writeSync } from 'node:fs';
import { Socket } from 'node:net';
import { types } from 'node:util';
import type { CallFacts, RunFacts, StreamName } from '../contract.ts';
import { contextOf, errorCodeOf, messageOf, stackOf, type TaskFunctions, unknownFunction } from './function.ts';
import { loadFunctions } from './file.ts';
import { resultOfValue } from '../task/result.ts';
import { descriptors, type HostMessage, LineReader, maxReasonLength, type Order, printBytes } from './wire.ts';

interface Call {
  readonly stop: AbortController;
  open: boolean;
}

const calls = new AsyncLocalStorage<Call>();
let current: Call | undefined;

function send(message: HostMessage): void {
  const line = Buffer.from(`${JSON.stringify(message)}\n`);
  for (let at = 0; at < line.length; ) at += writeSync(descriptors.toWorker, line, at);
}

function print(stream: StreamName, data: Buffer): void {
  for (let at = 0; at < data.length; at += printBytes) {
    send({ print: data.toString('base64', at, Math.min(data.length, at + printBytes)), stream });
  }
}

function end(call: Call, state: 'success' | 'failure' | 'error', reason: string | null, more: Ending = {}): void {
  if (!call.open) return;
  call.open = false;
  current = undefined;
  const tooLong = reason !== null && reason.length > maxReasonLength;
  send({
    end: state,
    reason: tooLong ? `its message has ${reason.length} characters; see the log` : reason,
    ...resultOfValue(more.returned),
    ...(more.code === undefined ? {} : { code: more.code }),
  });
}

interface Ending {
  readonly returned?: unknown;
  /** Of the error that it has thrown. */
  readonly code?: string | undefined;
}

function fail(call: Call, error: unknown): void {
  if (call.open) print('err', Buffer.from(`${stackOf(error)}\n`));
  end(call, 'failure', messageOf(error), { code: errorCodeOf(error) });
}

/** Diverts output during a call to the log of its run. */
function divert(stream: NodeJS.WriteStream, name: StreamName): void {
  const write = stream.write.bind(stream);
  function diverted(data: string | Uint8Array, encoding?: unknown, done?: unknown): boolean {
    const text = typeof encoding === 'string' ? (encoding as BufferEncoding) : undefined;
    if (calls.getStore()?.open !== true) return write(data, text, callbackOf(encoding, done));
    print(name, typeof data === 'string' ? Buffer.from(data, text) : Buffer.from(data));
    const written = callbackOf(encoding, done);
    if (written) process.nextTick(written);
    return true;
  }
  stream.write = diverted;
}

type Written = (error?: Error | null) => void;

function callbackOf(...candidates: unknown[]): Written | undefined {
  return candidates.find((each): each is Written => typeof each === 'function');
}

async function run(functions: TaskFunctions, { name, input, facts }: Called, call: Call): Promise<void> {
  const called = Object.hasOwn(functions, name) ? functions[name] : undefined;
  if (called === undefined) return end(call, 'error', unknownFunction(name, functions));
  const log = (line: string): void => {
    if (call.open) print('out', Buffer.from(`${line}\n`));
  };
  try {
    const returned = await called(input, contextOf(facts, call.stop.signal, log));
    if (types.isGeneratorObject(returned))
      end(call, 'error', `the function "${name}" returned a generator, whose values nothing would consume`);
    else end(call, 'success', null, { returned });
  } catch (error) {
    fail(call, error);
  }
}

interface Called {
  readonly name: string;
  readonly input: unknown;
  readonly facts: RunFacts | CallFacts;
}

function handle(functions: TaskFunctions, order: Order): void {
  if ('stop' in order) return current?.stop.abort(order.stop);
  const call: Call = { stop: new AbortController(), open: true };
  current = call;
  void calls.run(call, () => run(functions, order.call, call));
}

/** An exception that belongs to no call, such as that of a timer of the file itself, is attributed to the call under way. */
function onUncaught(error: unknown): void {
  send({ spent: true });
  const from = calls.getStore() ?? current;
  if (from?.open) {
    fail(from, error);
    process.exit(1);
  }
  process.stderr.write(`${stackOf(error)}\n`);
}

async function main(file: string): Promise<void> {
  const functions = await loadFunctions(file);
  process.on('uncaughtException', onUncaught);
  divert(process.stdout, 'out');
  divert(process.stderr, 'err');
  const orders = new Socket({ fd: descriptors.fromWorker, readable: true, writable: false });
  const reader = new LineReader();
  orders.on('data', (data) => {
    for (const line of reader.push(data)) handle(functions, JSON.parse(line) as Order);
  });
  // the worker has ended, or wants this process to end
  orders.on('close', () => process.exit(0));
  send({ ready: true, functions: JSON.stringify(Object.keys(functions)) });
}

main(process.argv[2] ?? '').catch((error: unknown) => {
  send({ refused: messageOf(error) });
  process.exit(1);
});
