/**
 * Passes a container's output on to the sink, across broken connections. After one, it asks for the output since a second before
 * the last timestamp, and skips what it has passed on. Each stream is in the order of its timestamps, the two together are not. Of the
 * last timestamp of a stream it skips as many lines as it has passed on, because podman's timestamps are whole seconds. While the sink is full nothing is read; the engine then keeps the newest `logFileBytes`.
 */
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import type { Output, StreamName } from '../contract.ts';
import type { EngineClient } from './engine-client.ts';
import { type LogFrame, LogFrames } from './log-frames.ts';

/** The last timestamp of a stream, and the number of frames with it. */
interface Position {
  stamp: string;
  passed: number;
}

/** How far the timestamps of the two streams may be out of order: the engine stores each as soon as it can. */
const marginSeconds = 1;

export class ContainerLog {
  readonly #client: EngineClient;
  readonly #container: string;
  readonly #output: Output;
  readonly #positions: Record<StreamName, Position> = { out: { stamp: '', passed: 0 }, err: { stamp: '', passed: 0 } };
  #isWaiting = false;
  #readings = 0;

  constructor(client: EngineClient, container: string, output: Output) {
    this.#client = client;
    this.#container = container;
    this.#output = output;
  }

  /** Changes whenever output is read, and stays the same while none is. A full sink counts as reading. */
  get progress(): number {
    return this.#isWaiting ? Number.NaN : this.#readings;
  }

  /** Reads until the end of the output, or with `follow` until the container ends. Throws if the connection breaks. */
  async read({ follow, signal }: { readonly follow: boolean; readonly signal?: AbortSignal }): Promise<void> {
    const stream = await this.#client.stream({
      method: 'GET',
      path: `/containers/${this.#container}/logs`,
      query: { stdout: 1, stderr: 1, timestamps: 1, follow: follow ? 1 : 0, since: this.#since() },
      signal,
    });
    const frames = new LogFrames();
    const seen = { out: { ...this.#positions.out }, err: { ...this.#positions.err } };
    for await (const piece of stream as AsyncIterable<Buffer>) {
      this.#readings++;
      await this.#pass(this.#select(frames.push(piece), seen));
    }
    if (!stream.complete) throw await brokenStream(stream);
  }

  /** Those that were not passed on before. */
  #select(frames: readonly LogFrame[], seen: Record<StreamName, Position>): LogFrame[] {
    return frames.filter(({ stream, stamp }) => {
      if (stream === 'engine') throw new Error('the engine could not read the output');
      const before = seen[stream];
      if (stamp < before.stamp) return false;
      if (stamp === before.stamp && before.passed > 0) {
        before.passed--;
        return false;
      }
      const position = this.#positions[stream];
      position.passed = stamp === position.stamp ? position.passed + 1 : 1;
      position.stamp = stamp;
      return true;
    });
  }

  /** Seconds with nanoseconds, as the engine wants them. Undefined: from the start. */
  #since(): string | undefined {
    const { out, err } = this.#positions;
    const stamp = out.stamp > err.stamp ? out.stamp : err.stamp;
    if (stamp === '') return undefined;
    const [, fraction = ''] = /\.(\d+)/.exec(stamp) ?? [];
    return `${Math.floor(Date.parse(stamp) / 1_000) - marginSeconds}.${fraction.padEnd(9, '0')}`;
  }

  async #pass(frames: readonly LogFrame[]): Promise<void> {
    for (const { stream, data } of joinNeighbours(frames)) {
      const wait = this.#output.write(stream, data);
      if (wait === undefined) continue;
      this.#isWaiting = true;
      await wait.catch(() => {}); // the sink reports its own faults
      this.#isWaiting = false;
    }
  }
}

/** Many short lines of one stream become one piece. */
function joinNeighbours(frames: readonly LogFrame[]): { readonly stream: StreamName; readonly data: Buffer }[] {
  const joined: { stream: StreamName; parts: Buffer[] }[] = [];
  for (const { stream, data } of frames) {
    if (stream === 'engine') continue;
    const last = joined.at(-1);
    if (last?.stream === stream) last.parts.push(data);
    else joined.push({ stream, parts: [data] });
  }
  return joined.map(({ stream, parts }) => ({ stream, data: Buffer.concat(parts) }));
}

async function brokenStream(stream: IncomingMessage): Promise<Error> {
  if (stream.errored) return stream.errored;
  await once(stream, 'close').catch(() => {});
  return new Error('the engine broke off the output');
}
