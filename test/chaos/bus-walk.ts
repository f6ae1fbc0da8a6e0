/**
 * A bus under load whose processes die at its checkpoints, freeze, and lose their database (see bus-workload.ts for the load). In
 * the end nothing may be lost, doubled or out of order (see bus-oracle.ts).
 */
import { type Checkpoint, checkpoints } from '../../src/app/checkpoints.ts';
import { sql } from '../../src/kernel/sql.ts';
import { type BusReceiver, makeBusReceiver } from '../harness/bus-receiver.ts';
import { until } from '../harness/until.ts';
import { busFaults, waitUntilDelivered } from './bus-oracle.ts';
import { BusWorkload } from './bus-workload.ts';
import { dieAtEach, type Dying } from './crash-walk.ts';
import { makeDice } from './dice.ts';
import { ChaosInstallation } from './installation.ts';

/** Longer than the longest pause before a retry, and than the silence after which errands come back. */
const stalledMs = 75_000;
const patienceMs = 60_000;
/** Events that arrive between two blows. */
const eventsBetween = 30;

export class BusWalk implements Dying {
  readonly installation: ChaosInstallation;
  readonly options: { readonly passages: number };
  readonly dice;
  readonly died = new Set<Checkpoint>();
  readonly faults: string[] = [];
  readonly #receiver: BusReceiver;
  readonly #workload: BusWorkload;
  readonly #over = new AbortController();
  readonly #feeding: Promise<void>;

  private constructor(installation: ChaosInstallation, receiver: BusReceiver, seed: number, passages: number) {
    this.installation = installation;
    this.options = { passages };
    this.dice = makeDice(seed);
    this.#receiver = receiver;
    this.#workload = new BusWorkload(installation, receiver, this.dice);
    this.#feeding = this.#workload.begin().then(() => this.#workload.feed(this.#over.signal));
    // its failure is that of `finish`
    this.#feeding.catch(() => {});
  }

  /** A process dies at a random passage of its checkpoint, from the first to `passages`. */
  static async start({ seed, passages }: { readonly seed: number; readonly passages: number }): Promise<BusWalk> {
    const installation = await ChaosInstallation.start({ hosts: 1, workers: 0, couriers: 2, leaseMs: 3_000 });
    return new BusWalk(installation, await makeBusReceiver(), seed, passages);
  }

  /** Couriers, a host and an API die at each of these. */
  async dieAt(names: readonly Checkpoint[]): Promise<void> {
    const { api, couriers, hosts } = this.installation;
    const some = (all: readonly Checkpoint[]) => all.filter((name) => names.includes(name));
    await Promise.all([
      this.#dieInPairs(couriers, some(checkpoints.courier)),
      dieAtEach(this, hosts, some(checkpoints.outbox)),
    ]);
    // separately, because nothing is published while the API dies at every request
    await dieAtEach(this, [api], some(checkpoints.publish));
  }

  /**
   * An errand that is lost five times without progress is set aside, which is right: so after every two deaths all errands make some.
   */
  async #dieInPairs(couriers: ChaosInstallation['couriers'], names: readonly Checkpoint[]): Promise<void> {
    for (let i = 0; i < names.length; i += 2) {
      await dieAtEach(this, couriers, names.slice(i, i + 2));
      const isCalm = async () => {
        const { worst } = await this.installation.db.one<{ worst: number }>(
          sql`select coalesce(max(losses), 0) as worst from errand`,
        );
        return worst === 0;
      };
      await Promise.race([until('all errands have made progress', isCalm, 2 * patienceMs), this.#feeding]);
    }
  }

  /** A courier freezes until others have what it held, and goes on as if nothing had happened. */
  async freezeCourier(): Promise<void> {
    const courier = this.dice.next(this.installation.couriers);
    const id = await until(
      'it holds something',
      async () => {
        const held = await this.installation.errandsHeld(courier.pid);
        return held > 0 || undefined;
      },
      patienceMs,
    ).then(() => courier.pid);
    courier.signal('SIGSTOP');
    await this.installation.forgetCourier(id);
    await until('its errands passed on', async () => (await this.installation.errandsHeld(id)) === 0, patienceMs);
    courier.signal('SIGCONT');
    await this.goOn();
  }

  /** Waits until further events are stored and further batches accepted. */
  async goOn(): Promise<void> {
    const accepted = () => this.#receiver.received.filter(({ status }) => status === 204).length;
    const wanted = accepted() + eventsBetween;
    await Promise.race([until('deliveries go on', () => accepted() >= wanted, 2 * patienceMs), this.#feeding]);
  }

  /** Ends the load, waits until everything is delivered, and returns all faults. */
  async finish(): Promise<readonly string[]> {
    this.#over.abort();
    await this.#feeding;
    const { db, roles } = this.installation;
    const stalled = await waitUntilDelivered(db, stalledMs);
    const ended = roles.flatMap((role) => role.faults);
    const faults = [...this.faults, ...stalled, ...(await busFaults(db, this.#workload)), ...ended];
    return faults.length > 0 ? [...faults, this.installation.output()] : [];
  }

  /** Errands that were set aside: no courier was lost with one so often. */
  async poisoned(): Promise<number> {
    const { n } = await this.installation.db.one<{ n: number }>(
      sql`select count(*) as n from errand where state = 'x'`,
    );
    return n;
  }

  async close(): Promise<void> {
    this.#over.abort();
    await this.installation.close();
    await this.#receiver.close();
  }
}

/** Checkpoints that this walk can reach. */
export const busWalked: readonly Checkpoint[] = [...checkpoints.courier, ...checkpoints.outbox, ...checkpoints.publish];
