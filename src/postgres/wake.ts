/**
 * Wake-ups between processes (design §4): NOTIFY is per database, so they all go through the control database, on one
 * connection per process that both listens and notifies. They are hints: the listeners of this process are told at
 * once, the others by one coalesced NOTIFY, and after a lost connection everyone is told, because something may have
 * been missed.
 */
import { Client } from 'pg';
import { delayMs, reconnect } from '../kernel/backoff.ts';
import { newId } from '../kernel/id.ts';
import type { Log } from '../kernel/log.ts';
import { loop, pause, type Service } from '../kernel/service.ts';
import { type Address, clientConfig } from './address.ts';

const channel = 'millrace_wake';

/** `about`: the tenant (or whatever both ends agree on) it was sent for; `payload`: what was sent along. */
type Listener = (about: string, payload: string) => void;

/** Listens for a kind whatever it is about. */
const anything = '*';

export class WakeHub {
  readonly #origin = newId().slice(-12);
  readonly #listeners = new Map<string, Set<Listener>>();
  readonly #pending = new Set<string>();
  readonly #address: Address;
  readonly #log: Log;
  #client: Client | undefined;
  #sending = false;
  readonly service: Service;

  constructor(address: Address, log: Log) {
    this.#address = address;
    this.#log = log;
    this.service = this.#makeService();
  }

  /** Tells this process now and the others soon. After a lost connection listeners are told without a payload. */
  send(about: string, kind: string, payload = ''): void {
    this.#tell(about, kind, payload);
    this.#pending.add(`${about} ${kind} ${payload}`);
    void this.#flush();
  }

  onAny(kind: string, listener: Listener): () => void {
    return this.on(anything, kind, listener);
  }

  on(about: string, kind: string, listener: Listener): () => void {
    const key = `${about} ${kind}`;
    const set = this.#listeners.get(key) ?? new Set();
    this.#listeners.set(key, set.add(listener));
    return () => {
      set.delete(listener);
      if (set.size === 0 && this.#listeners.get(key) === set) this.#listeners.delete(key);
    };
  }

  #tell(about: string, kind: string, payload: string): void {
    for (const listener of this.#listeners.get(`${about} ${kind}`) ?? []) listener(about, payload);
    if (about === anything) return;
    for (const listener of this.#listeners.get(`${anything} ${kind}`) ?? []) listener(about, payload);
  }

  #tellEveryone(): void {
    for (const key of [...this.#listeners.keys()]) {
      const [about = '', kind = ''] = key.split(' ');
      this.#tell(about, kind, '');
    }
  }

  /** One NOTIFY statement in flight; whatever gathers meanwhile shares the next. */
  async #flush(): Promise<void> {
    if (this.#sending) return;
    this.#sending = true;
    try {
      while (this.#client && this.#pending.size > 0) {
        const keys = [...this.#pending].map((key) => `${this.#origin} ${key}`);
        this.#pending.clear();
        const text = 'select pg_notify($1, key) from unnest($2::text[]) as key';
        await this.#client.query({ name: 'wake', text, values: [channel, keys] });
      }
    } catch (error) {
      this.#log.debug({ err: error }, 'a wake-up could not be sent; sweeps will find what it was about');
    } finally {
      this.#sending = false;
    }
  }

  #hear(payload: string): void {
    const [origin, about = '', kind = '', ...rest] = payload.split(' ');
    if (origin !== this.#origin) this.#tell(about, kind, rest.join(' '));
  }

  async #connect(): Promise<Client> {
    const client = new Client(clientConfig(this.#address, 'millrace wake'));
    client.on('error', () => {});
    await client.connect();
    client.on('notification', (message) => this.#hear(message.payload ?? ''));
    await client.query(`listen ${channel}`);
    return client;
  }

  #makeService(): Service {
    const first: { resolve?: () => void } = {};
    const listening = loop(
      'wake',
      (signal) => this.#listen(signal, () => first.resolve?.()),
      (error) => this.#log.error({ err: error }, 'wake-ups have stopped'),
    );
    return {
      name: 'wake',
      start: async () => {
        const connected = new Promise<void>((resolve) => {
          first.resolve = resolve;
        });
        await listening.start();
        await Promise.race([connected, pause(5_000)]);
      },
      stop: listening.stop,
    };
  }

  async #listen(signal: AbortSignal, onConnected: () => void): Promise<void> {
    for (let attempt = 0; !signal.aborted; attempt++) {
      try {
        const client = await this.#connect();
        this.#client = client;
        attempt = 0;
        onConnected();
        this.#tellEveryone();
        void this.#flush();
        await ended(client, signal);
      } catch (error) {
        this.#log.debug({ err: error }, 'the connection for wake-ups is lost');
      }
      this.#client = undefined;
      if (!signal.aborted) await pause(delayMs(reconnect, attempt), signal);
    }
  }
}

async function ended(client: Client, signal: AbortSignal): Promise<void> {
  await new Promise<void>((resolve) => {
    const done = (): void => resolve();
    client.once('end', done);
    if (signal.aborted) done();
    signal.addEventListener('abort', done, { once: true });
  });
  await client.end().catch(() => {});
}
