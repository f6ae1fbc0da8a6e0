/**
 * The conformance suite of brokers on a driver with queues, as RabbitMQ has them: exchanges and hints are kept in memory. It
 * shows that the contract can hold such a driver, and that the suite tests its queues.
 */
import type { Broker } from '../../src/broker/contract.ts';
import type { HintKind } from '../../src/contract/channels.ts';
import type { Offer } from '../../src/contract/engine.ts';
import { describeBroker, describeQueues, type QueueBench } from './broker.ts';

type Heard = (tenantId: string | undefined, payload: unknown) => void;
type Take = (tenantId: string, offers: readonly Offer[]) => void;

/** The server: what every broker of an installation is connected to. */
class MemoryServer {
  readonly connected = new Set<Connection>();
  readonly consumers = new Map<string, Set<Take>>();
  isBlocked = false;
}

const roomOfConsumer = 100;
const runsOfMessage = 16;

class Connection {
  readonly #server: MemoryServer;
  readonly #listeners = new Set<{ readonly kind: HintKind; readonly heard: Heard }>();

  constructor(server: MemoryServer) {
    this.#server = server;
    server.connected.add(this);
  }

  /** All listeners may have missed something while the connection was lost. */
  reconnected(): void {
    for (const { heard } of this.#listeners) heard(undefined, undefined);
  }

  hear(kind: HintKind, tenantId: string, payload: unknown): void {
    for (const listener of this.#listeners) if (listener.kind === kind) listener.heard(tenantId, payload);
  }

  listen(kind: HintKind, heard: Heard): () => void {
    const listener = { kind, heard };
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  send(kind: HintKind, tenantId: string, payload: unknown): void {
    this.hear(kind, tenantId, payload);
    for (const other of this.#server.connected)
      if (other !== this) setImmediate(() => other.hear(kind, tenantId, payload));
  }

  get broker(): Broker {
    const consumersOf = (lane: string): readonly Take[] => [...(this.#server.consumers.get(lane) ?? [])];
    return {
      hintsOf: (tenantId) => ({
        send: (kind, payload) => this.send(kind, tenantId, payload),
        on: (kind, listener) =>
          this.listen(kind, (about) => {
            if (about === undefined || about === tenantId) listener();
          }),
      }),
      onAny: (kind, listener) => this.listen(kind, listener as Heard),
      room: (_, lane) => (this.#server.isBlocked ? 0 : consumersOf(lane).length * roomOfConsumer),
      publish: async (tenantId, lane, offers) => {
        if (this.#server.isBlocked) throw new Error('the connection is blocked');
        const [take] = consumersOf(lane);
        if (take === undefined) throw new Error('returned: no queue takes the message');
        for (let at = 0; at < offers.length; at += runsOfMessage) take(tenantId, offers.slice(at, at + runsOfMessage));
      },
    };
  }
}

function makeBench(): Promise<QueueBench> {
  const server = new MemoryServer();
  return Promise.resolve({
    open: async () => new Connection(server).broker,
    cut: async () => {
      for (const connection of server.connected) connection.reconnected();
    },
    consume: async (lane, take) => {
      const takes = server.consumers.get(lane) ?? new Set();
      server.consumers.set(lane, takes.add(take));
      return async () => void takes.delete(take);
    },
    block: async () => {
      server.isBlocked = true;
      return async () => void (server.isBlocked = false);
    },
    close: async () => {},
  });
}

describeBroker('queue', makeBench);
describeQueues('queue', makeBench);
