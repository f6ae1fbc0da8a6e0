/**
 * The calls of hosted functions that are under way in this process.
 *
 * 1. A key is called once at a time: a repetition, such as after a pause of its tenant, waits for the call under way.
 * 2. At most `maxCalls` at once; tenants with more take turns. One tenant alone gets all but one in 32 of the places, so that functions
 *    that do not return keep no other tenant waiting.
 * 3. An answer whose tenant is closed meanwhile is kept for a minute. After that the call is repeated with the same key.
 *
 * A call is `queued`, `running`, or `answered` while nobody has taken its answer.
 */
import type { HostedCall } from '../../contract/flows.ts';
import { type CallOutcome, CallStop, type HostedFunctions } from './hosted.ts';

export interface CallTenant {
  readonly id: string;
  readonly name: string;
}

type OnAnswer = (call: HostedCall, outcome: CallOutcome) => void;

interface Call {
  readonly tenant: CallTenant;
  readonly call: HostedCall;
  readonly stop: CallStop;
  isRunning: boolean;
  outcome?: CallOutcome;
  /** Missing: nobody can take the answer now. */
  onAnswer: OnAnswer | undefined;
}

const keptMs = 60_000;

export class Calls {
  readonly #functions: HostedFunctions;
  readonly #maxCalls: number;
  /** By tenant and key. */
  readonly #calls = new Map<string, Map<string, Call>>();
  /** Calls that wait for a place, by tenant; tenants in the order of their turns. */
  readonly #queues = new Map<string, Call[]>();
  #running = 0;
  readonly #runningOf = new Map<string, number>();
  readonly #maxOfTenant: number;

  constructor(functions: HostedFunctions, maxCalls: number) {
    this.#functions = functions;
    this.#maxCalls = maxCalls;
    this.#maxOfTenant = Math.max(1, maxCalls - Math.ceil(maxCalls / 32));
  }

  get running(): number {
    return this.#running;
  }

  /** Calls of a tenant whose answers are not taken. */
  count(tenantId: string): number {
    return this.#calls.get(tenantId)?.size ?? 0;
  }

  start(tenant: CallTenant, call: HostedCall, onAnswer: OnAnswer): void {
    const ofTenant = this.#calls.get(tenant.id) ?? new Map<string, Call>();
    this.#calls.set(tenant.id, ofTenant);
    const known = ofTenant.get(call.key);
    if (known !== undefined) {
      known.onAnswer = onAnswer;
      if (known.outcome !== undefined) this.#tell(known, known.outcome);
      return;
    }
    const made: Call = { tenant, call, stop: new CallStop(), isRunning: false, onAnswer };
    ofTenant.set(call.key, made);
    const queue = this.#queues.get(tenant.id);
    if (queue === undefined) this.#queues.set(tenant.id, [made]);
    else queue.push(made);
    this.#fill();
  }

  /** Asks a call to stop. One that has not begun is answered at once. */
  stop(tenantId: string, key: string, reason: string): void {
    const call = this.#calls.get(tenantId)?.get(key);
    if (call === undefined) return;
    call.stop.stop(reason);
    if (!call.isRunning && call.outcome === undefined) this.#answer(call, { kind: 'cancelled' });
  }

  /** Another conductor drives the execution: its calls are stopped, and their answers not wanted. */
  dropExecution(tenantId: string, execution: string): void {
    for (const call of this.#calls.get(tenantId)?.values() ?? [])
      if (call.call.execution === execution) this.#drop(call, 'lost');
  }

  /** Calls that answer before the tenant is open again keep their answers. Returns the executions that made them. */
  detach(tenantId: string): Set<string> {
    const calls = [...(this.#calls.get(tenantId)?.values() ?? [])];
    for (const call of calls) call.onAnswer = undefined;
    return new Set(calls.map(({ call }) => call.execution));
  }

  /** Others may have repeated all calls, or this process ends. */
  dropAll(reason: string): void {
    for (const ofTenant of this.#calls.values()) for (const call of ofTenant.values()) this.#drop(call, reason);
  }

  #drop(call: Call, reason: string): void {
    this.#forget(call);
    call.onAnswer = undefined;
    call.stop.stop(reason);
  }

  #fill(): void {
    for (const [tenantId, queue] of this.#queues) {
      if (this.#running >= this.#maxCalls) return;
      if ((this.#runningOf.get(tenantId) ?? 0) >= this.#maxOfTenant) continue;
      const next = queue.shift();
      this.#queues.delete(tenantId);
      if (queue.length > 0) this.#queues.set(tenantId, queue);
      if (next !== undefined && !next.stop.isStopped) void this.#run(next);
    }
  }

  async #run(call: Call): Promise<void> {
    this.#count(call, 1);
    call.isRunning = true;
    const outcome = await this.#functions.call(call.call, { tenant: call.tenant.name, stop: call.stop });
    call.isRunning = false;
    this.#count(call, -1);
    this.#answer(call, outcome);
    this.#fill();
  }

  #count({ tenant: { id } }: Call, change: 1 | -1): void {
    this.#running += change;
    const ofTenant = (this.#runningOf.get(id) ?? 0) + change;
    if (ofTenant === 0) this.#runningOf.delete(id);
    else this.#runningOf.set(id, ofTenant);
  }

  #answer(call: Call, outcome: CallOutcome): void {
    if (this.#calls.get(call.tenant.id)?.get(call.call.key) !== call) return;
    call.outcome = outcome;
    if (call.onAnswer !== undefined) return this.#tell(call, outcome);
    setTimeout(() => call.onAnswer === undefined && this.#forget(call), keptMs).unref();
  }

  #tell(call: Call, outcome: CallOutcome): void {
    this.#forget(call);
    call.onAnswer?.(call.call, outcome);
  }

  #forget({ tenant, call }: Call): void {
    const ofTenant = this.#calls.get(tenant.id);
    ofTenant?.delete(call.key);
    if (ofTenant?.size === 0) this.#calls.delete(tenant.id);
  }
}
