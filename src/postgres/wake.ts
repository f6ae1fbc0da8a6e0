/**
 * Wake-ups between processes (design §4): NOTIFY is per database, so they all go through the control database, on one
 * connection per process that both listens and notifies. They are hints: the listeners of this process are told at
 * once, the others by one coalesced NOTIFY, and after a lost connection everyone is told, because something may have
 * been missed.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Client } from 'pg';
import { isConnectionLoss } from '../errors.ts';
import { delayMs, reconnect } from '../kernel/backoff.ts';
import { newId } from '../kernel/id.ts';
import type { Log } from '../kernel/log.ts';
import { loop, pause, type Service } from '../kernel/service.ts';
import { type Address, clientConfig } from './address.ts';

const channel = 'millrace_wake';

/** `about`: the tenant (or whatever both ends agree on) it was sent for; `payload`: what was sent along. */
type Listener = (about: string, payload: string) => void;

/** Without a connection by then, the process starts all the same. */
const longestStartMs = 5_000;

/** Listens for a kind whatever it is about; and is what such a listener is told when something may have been missed. */
export const anything = '*';

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
    const exact = this.#listeners.get(`${about} ${kind}`) ?? [];
    const others = about === anything ? [] : (this.#listeners.get(`${anything} ${kind}`) ?? []);
    for (const listener of [...exact, ...others]) {
      try {
        listener(about, payload);
      } catch (error) {
        this.#log.error({ err: error, kind }, 'a listener for wake-ups failed');
      }
    }
  }

  #tellEveryone(): void {
    for (const key of Array.from(this.#listeners.keys())) {
      const [about = '', kind = ''] = key.split(' ');
      this.#tell(about, kind, '');
    }
  }

  /** One NOTIFY statement in flight; whatever gathers meanwhile shares the next. */
  async #flush(): Promise<void> {
    if (this.#sending) return;
    this.#sending = true;
    // what is sent in the same turn goes along, and whatever is to be done here goes first
    await nextTurn();
    while (this.#client && this.#pending.size > 0) {
      const keys = [...this.#pending];
      this.#pending.clear();
      if (!(await this.#notify(this.#client, keys))) break;
    }
    this.#sending = false;
  }

  async #notify(client: Client, keys: readonly string[]): Promise<boolean> {
    const text = 'select pg_notify($1, key) from unnest($2::text[]) as key';
    try {
      await client.query({ name: 'wake', text, values: [channel, keys.map((key) => `${this.#origin} ${key}`)] });
      return true;
    } catch (error) {
      this.#log.debug({ err: error }, 'wake-ups could not be sent');
      // those of a lost connection go with the next one's; what the server refused, sweeps will find
      if (isConnectionLoss(error)) for (const key of keys) this.#pending.add(key);
      return false;
    }
  }

  #hear(payload: string): void {
    const [origin, about = '', kind = '', ...rest] = payload.split(' ');
    if (origin !== this.#origin) this.#tell(about, kind, rest.join(' '));
  }

  async #connect(): Promise<Client> {
    const client = new Client(clientConfig(this.#address, 'millrace wake'));
    client.on('error', () => {});
    try {
      await client.connect();
      client.on('notification', (message) => this.#hear(message.payload ?? ''));
      await client.query(`listen ${channel}`);
      return client;
    } catch (error) {
      await client.end().catch(() => {});
      throw error;
    }
  }

  #makeService(): Service {
    let connected = signalOnce();
    const listening = loop(
      'wake',
      (signal) => this.#listen(signal, () => connected.give()),
      (error) => this.#log.error({ err: error }, 'wake-ups have stopped'),
    );
    return {
      name: 'wake',
      start: async () => {
        await listening.start();
        await Promise.race([connected.given, pause(longestStartMs)]);
      },
      stop: async () => {
        await listening.stop();
        connected = signalOnce();
      },
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

function signalOnce(): { readonly given: Promise<void>; readonly give: () => void } {
  let give = (): void => {};
  const given = new Promise<void>((resolve) => {
    give = resolve;
  });
  return { given, give: () => give() };
}

async function ended(client: Client, signal: AbortSignal): Promise<void> {
  await new Promise<void>((resolve) => {
    const done = (): void => {
      signal.removeEventListener('abort', done);
      resolve();
    };
    client.once('end', done);
    signal.addEventListener('abort', done, { once: true });
    if (signal.aborted) done();
  });
  await client.end().catch(() => {});
}
