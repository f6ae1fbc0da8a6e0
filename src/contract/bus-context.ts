/**
 * The parts of the event bus in an engine's context: settings, the Redis connection, and the couriers of the installation. All
 * of them are missing in a shell without an event bus.
 */

export interface BusSettings {
  /** Bytes of JSON in the `data` of an event. */
  readonly maxDataBytes: number;
  /** The age of events that all subscribers have received. */
  readonly retentionMs: number;
  /** The size of the bus log of a tenant, beyond which its oldest events are dropped. Missing: no limit. */
  readonly maxBytes?: number;
  /** How long a delivery is retried, unless its subscriber sets another time. */
  readonly giveUpMs: number;
  /** Deliveries under way at once in one courier. */
  readonly maxConnections: number;
  /** Whether callbacks may be plain http. Missing: no. */
  readonly allowHttp?: boolean;
}

/** The connection to Redis that the tenants of a process share. Keys begin with the id of the tenant. */
export interface RedisPort {
  send(command: readonly (string | Uint8Array)[]): Promise<unknown>;
  /** Runs a script of the engine by name, which loads it where the server does not have it. */
  script(
    name: string,
    source: string,
    keys: readonly string[],
    args: readonly (string | Uint8Array)[],
  ): Promise<unknown>;
}

export interface CourierInfo {
  readonly id: string;
  readonly machine: string;
  readonly version: string;
  readonly lastSeenAt: Date;
}
