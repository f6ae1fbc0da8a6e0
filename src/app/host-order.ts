/** Messages between `up` and its hosts. */

export interface HostOrder {
  /** The control database, which is migrated already. */
  readonly databaseUrl: string;
}

/** The message of a host once it is registered. */
export const registered = 'registered';
