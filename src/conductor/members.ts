/**
 * This conductor among the others: its row in the control database, its beat each second, and who else is alive.
 *
 * 1. Its id is new at each start. After a silence in which others may have taken it for dead, it goes on under a new id, and what it
 *    had in memory is forgotten in the same moment (`onRenewed`): what is begun under an id is not forgotten under it.
 * 2. A silent conductor of this machine whose process is gone is marked as dead at once; others are after 5 s.
 * 3. A wrong view of the others costs time only, because every commit compares the revision of its execution.
 */
import type { ConductorTally } from '../contract/conductor-tally.ts';
import {
  beatConductor,
  markConductorLeaving,
  markConductorsLost,
  noteTakenOver,
  type OtherConductor,
  removeConductor,
} from '../control/conductor-queries.ts';
import { newId } from '../kernel/id.ts';
import { machine } from '../kernel/process/machine.ts';
import { isProcessRunning } from '../kernel/process/process-stat.ts';
import type { Db } from '../kernel/sql.ts';
import type { MemberView } from './choose-owner.ts';

export interface MembersOptions {
  readonly control: Db;
  readonly version: string;
  /** The functions that it hosts: known when it registers. */
  readonly functions: () => ReadonlySet<string>;
  /** Tenants in which it drives executions. */
  readonly tenants: () => readonly string[];
  readonly tally: () => ConductorTally;
  /** Conductors have come or gone. */
  readonly onChanged: () => void;
  /** It has a new id, because others may have taken over its executions. */
  readonly onRenewed: () => void;
}

/** The tally may be large, so not every beat writes it. */
const tallyEveryMs = 4_000;

export class Members {
  readonly #options: MembersOptions;
  #view: MemberView;
  #dead: readonly OtherConductor[] = [];
  #isKnown = false;
  #talliedMs = Number.NEGATIVE_INFINITY;
  /** Beats follow each other, so that an older list of tenants never replaces a newer one. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(options: MembersOptions) {
    this.#options = options;
    this.#view = { id: newId(), functions: new Set(), others: new Map() };
  }

  get view(): MemberView {
    return this.#view;
  }

  /** Tenants whose executions dead conductors have left. */
  get bereaved(): ReadonlySet<string> {
    return new Set(this.#dead.flatMap(({ tenants }) => tenants));
  }

  /** Registers this conductor, or renews its beat. */
  beat(): Promise<void> {
    const beaten = this.#last.then(() => this.#beat());
    this.#last = beaten.catch(() => {});
    return beaten;
  }

  async #beat(): Promise<void> {
    if (!this.#isKnown) this.#view = { ...this.#view, functions: this.#options.functions() };
    const answer = await this.#write(this.#view.id, this.#isKnown);
    if (answer.isDoubted) return this.#renew();
    this.#isKnown = true;
    this.#see(await this.#markGone(answer.others));
  }

  /** The executions that dead conductors had in this tenant are taken care of. */
  async noteTakenOver(tenantId: string): Promise<void> {
    const ids = this.#dead.filter(({ tenants }) => tenants.includes(tenantId)).map(({ id }) => id);
    if (ids.length === 0) return;
    await noteTakenOver(this.#options.control, tenantId, ids);
    this.#dead = this.#dead.map((dead) => ({ ...dead, tenants: dead.tenants.filter((id) => id !== tenantId) }));
  }

  async markLeaving(): Promise<void> {
    await markConductorLeaving(this.#options.control, this.#view.id);
  }

  /** `unsettled`: tenants in which it leaves executions that others have to look after. */
  async leave(unsettled: readonly string[]): Promise<void> {
    const { control } = this.#options;
    if (unsettled.length === 0) await removeConductor(control, this.#view.id);
    else await markConductorsLost(control, [this.#view.id], unsettled);
  }

  async #write(id: string, isKnown: boolean) {
    const { control, version, tenants, tally } = this.#options;
    const isTallied = performance.now() - this.#talliedMs < tallyEveryMs;
    const answer = await beatConductor(control, {
      id,
      machine,
      pid: process.pid,
      version,
      functions: [...this.#view.functions],
      tenants: tenants(),
      tally: isTallied ? undefined : tally(),
      isKnown,
    });
    if (!isTallied) this.#talliedMs = performance.now();
    return answer;
  }

  async #renew(): Promise<void> {
    const { control, tenants, onRenewed } = this.#options;
    const id = newId();
    this.#talliedMs = Number.NEGATIVE_INFINITY;
    await markConductorsLost(control, [this.#view.id], tenants());
    const answer = await this.#write(id, false);
    const others = await this.#markGone(answer.others);
    this.#view = { ...this.#view, id };
    onRenewed();
    this.#see(others);
  }

  /** Silent conductors of this machine whose processes are gone are dead. */
  async #markGone(others: readonly OtherConductor[]): Promise<OtherConductor[]> {
    const gone = others.filter(({ isNear, pid }) => isNear && pid !== process.pid && !isProcessRunning(pid));
    if (gone.length > 0)
      await markConductorsLost(
        this.#options.control,
        gone.map(({ id }) => id),
      );
    return others.map((other) => (gone.includes(other) ? { ...other, isAlive: false } : other));
  }

  #see(all: readonly OtherConductor[]): void {
    const before = this.#view.others;
    const others = new Map(
      all
        .filter(({ isAlive }) => isAlive)
        .map(({ id, functions, isLeaving }) => [id, { id, functions: new Set(functions), isLeaving }]),
    );
    this.#view = { ...this.#view, others };
    const deadBefore = new Set(this.#dead.map(({ id }) => id));
    this.#dead = all.filter(({ isAlive, tenants }) => !isAlive && tenants.length > 0);
    const hasChanged =
      before.size !== others.size ||
      [...others.keys()].some((id) => !before.has(id)) ||
      this.#dead.some(({ id }) => !deadBefore.has(id));
    if (hasChanged) this.#options.onChanged();
  }
}
