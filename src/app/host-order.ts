/** What passes between `up` and the hosts below it. */

export interface HostOrder {
  /** The control database is there, and migrated. */
  readonly databaseUrl: string;
}

/** A host's answer, once it is registered. */
export const registered = 'registered';
