/**
 * Parts of benchmarks with a process of their own: publishers, receivers and the bare server of `bus`, the rival of `flows`. Each is the
 * bundle of the benchmark once more, which is told its part and then answers calls over the channel to its parent.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { makeBare } from './bus/bare.ts';
import { makePublisher } from './bus/publisher.ts';
import { makeReceiver } from './bus/receiver.ts';
import { atEnd } from './ending.ts';
import { makeDbos } from './flows/dbos.ts';

const parts = { bare: makeBare, publisher: makePublisher, receiver: makeReceiver, dbos: makeDbos } as const;
type Parts = { readonly [Name in keyof typeof parts]: ReturnType<(typeof parts)[Name]> };

interface Call {
  readonly id: number;
  readonly name: string;
  readonly input: unknown;
}

type Answer = { readonly id: number } & ({ readonly output: unknown } | { readonly error: string });

/** Runs in the process of a part until its parent lets it go. */
export function runPart(name: keyof Parts): void {
  const part = parts[name]() as unknown as Record<string, (input: unknown) => Promise<unknown>>;
  const answer = (message: Answer): void => void process.send?.(message);
  process.on('message', ({ id, name: call, input }: Call) => {
    const work = part[call];
    if (work === undefined) answer({ id, error: `${name} has no call ${call}` });
    else
      work(input).then(
        (output) => answer({ id, output }),
        (error: unknown) =>
          answer({ id, error: error instanceof Error ? (error.stack ?? error.message) : String(error) }),
      );
  });
  process.on('disconnect', () => process.exit());
}

const program = 'const { runPart } = await import(process.argv[1]); runPart(process.argv[2]);';

export type Remote<Name extends keyof Parts> = Parts[Name] & { readonly pid: number; end(): Promise<void> };

/** Starts a process and returns its part: each call goes there. */
export function startPart<Name extends keyof Parts>(name: Name): Remote<Name> {
  const child = spawn(process.execPath, ['--input-type=module', '-e', program, import.meta.url, name], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  const end = atEnd(() => endChild(child));
  const waiting = new Map<
    number,
    { readonly resolve: (output: unknown) => void; readonly reject: (error: Error) => void }
  >();
  child.on('message', (message: Answer) => {
    const call = waiting.get(message.id);
    waiting.delete(message.id);
    if ('error' in message) call?.reject(new Error(message.error));
    else call?.resolve(message.output);
  });
  child.on('exit', (code) => {
    for (const { reject } of waiting.values()) reject(new Error(`${name} exited with ${code}`));
  });
  let calls = 0;
  const call = (method: string, input: unknown): Promise<unknown> =>
    new Promise((resolve, reject) => {
      const id = (calls += 1);
      waiting.set(id, { resolve, reject });
      child.send({ id, name: method, input } satisfies Call);
    });
  const own = new Map<PropertyKey, unknown>([
    ['pid', child.pid ?? 0],
    ['end', end],
    // a promise of a part would otherwise ask the part for it
    ['then', undefined],
  ]);
  return new Proxy({} as Remote<Name>, {
    get: (_, key) => (own.has(key) ? own.get(key) : (input?: unknown) => call(String(key), input ?? null)),
  });
}

async function endChild(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exit = once(child, 'exit');
  child.disconnect();
  await exit;
}
