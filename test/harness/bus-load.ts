/** Publishers of one topic that work all the time, and repeat what is not answered; and what must have become of their events. */
import { RivalsOracle } from '../bus/rivals-oracle.ts';
import { publishSurely, type Request } from './bus-client.ts';
import type { Received } from './bus-receiver.ts';
import { until } from './until.ts';

export interface BusLoad {
  /** The numbers of all events that were answered with 2xx. */
  readonly acknowledged: readonly number[];
  /** Waits until so many more events are acknowledged. */
  more(count: number): Promise<void>;
  /** Returns when the requests under way are answered. */
  stop(): Promise<void>;
}

const publishers = 3;

export function startBusLoad(where: Pick<Request, 'base' | 'key' | 'topic'>): BusLoad {
  const acknowledged: number[] = [];
  let isOver = false;
  const publish = async (publisher: number): Promise<void> => {
    for (let n = 0; !isOver; n++) {
      const event = (i: number) => ({
        type: 'update',
        url: `https://shop.example/${publisher}/${n}/${i}`,
        data: { n },
      });
      const events = n % 5 === 0 ? [0, 1, 2].map(event) : [event(0)];
      acknowledged.push(...(await publishSurely({ ...where, events, idempotencyKey: `${publisher} ${n}` })));
    }
  };
  const all = Promise.all(Array.from({ length: publishers }, (_, n) => publish(n)));
  return {
    acknowledged,
    async more(count) {
      const wanted = acknowledged.length + count;
      await Promise.race([
        until(`${count} more events are acknowledged`, () => acknowledged.length >= wanted, 90_000),
        all,
      ]);
    },
    async stop() {
      isOver = true;
      await all;
    },
  };
}

/** Waits until a receiver has these events. Returns what is wrong with their order, their batches and their ids. */
export async function faultsOfLoad(
  { acknowledged }: Pick<BusLoad, 'acknowledged'>,
  received: () => readonly Received[],
): Promise<readonly string[]> {
  await until(
    'all acknowledged events have arrived',
    () => {
      const accepted = received().filter(({ status }) => status !== undefined && status < 300);
      const seqs = new Set(accepted.flatMap((batch) => batch.seqs));
      return acknowledged.every((seq) => seqs.has(seq));
    },
    90_000,
  );
  const oracle = new RivalsOracle();
  oracle.checkReceived('the receiver', new Map(acknowledged.map((seq) => [seq, 'all'])), received());
  return oracle.faults;
}
