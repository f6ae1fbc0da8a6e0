/**
 * Telemetry: domain code says what happened as typed events; logs, metrics and pages subscribe. Emitting never throws
 * and never waits, so nothing that listens can hurt the work.
 */
interface TelemetryEvents {
  /** `latenessMs`: of each trigger, from its due time to the commit. */
  fired: { tenant: string; triggers: number; runs: number; latenessMs: readonly number[] };
  /** Missed instants. */
  caught_up: { tenant: string; triggers: number; runs: number };
  claimed: { runs: number; polls: number };
  reported: { runs: number; applied: number; created: number };
  leases_lost: { tenant: string; runs: number };
  retried: { tenant: string; runs: number };
  request: { method: string; status: number; ms: number };
}

type TelemetryName = keyof TelemetryEvents;
type Listener<N extends TelemetryName> = (data: TelemetryEvents[N]) => void;

export interface Telemetry {
  emit<N extends TelemetryName>(name: N, data: TelemetryEvents[N]): void;
  on<N extends TelemetryName>(name: N, listener: Listener<N>): void;
}

export function makeTelemetry(onFault: (error: unknown) => void): Telemetry {
  const listeners = new Map<TelemetryName, ((data: never) => void)[]>();
  return {
    on(name, listener) {
      listeners.set(name, [...(listeners.get(name) ?? []), listener]);
    },
    emit(name, data) {
      for (const listener of listeners.get(name) ?? []) {
        try {
          (listener as (data: unknown) => void)(data);
        } catch (error) {
          onFault(error);
        }
      }
    },
  };
}
