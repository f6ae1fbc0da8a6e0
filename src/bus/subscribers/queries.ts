/** Statements about subscribers: find, list, create, change and remove them. */
import { type Db, type Sql, sql } from '../../kernel/sql.ts';

export type SubscriberKind = 'http' | 'pull';
export type SubscriberState = 'active' | 'paused' | 'disabled';

/** A row of `subscriber`. */
export type Subscriber = {
  readonly id: string;
  readonly name: string;
  readonly identity: string;
  readonly kind: SubscriberKind;
  readonly callback: string | null;
  /** Encrypted. */
  readonly credential: Buffer | null;
  /** Encrypted, the newest first. */
  readonly secrets: readonly Buffer[];
  readonly state: SubscriberState;
  readonly reason: string | null;
  readonly health: number;
  readonly last_attempted_at: Date | null;
  readonly first_failed_at: Date | null;
  readonly rate: number | null;
  readonly max_attempts: number | null;
  readonly max_age_ms: number | null;
  readonly request_ms: number | null;
  readonly created_at: Date;
};

/** The fields that a person chooses. */
export type SubscriberSettings = Pick<
  Subscriber,
  'kind' | 'callback' | 'credential' | 'rate' | 'max_attempts' | 'max_age_ms' | 'request_ms'
>;

const columns = sql`
  s.id, s.name, s.identity, s.kind, s.callback, s.credential, s.secrets, s.state, s.reason, s.health, s.last_attempted_at,
  s.first_failed_at, s.rate, s.max_attempts, s.max_age_ms, s.request_ms, s.created_at`;

const find = (condition: Sql): Sql => sql`select ${columns} from subscriber s where ${condition}`;

export function findByIdentity(db: Db, identity: string): Promise<Subscriber | undefined> {
  return db.maybeOne<Subscriber>(find(sql`s.identity = ${identity}`));
}

export function findById(db: Db, id: string): Promise<Subscriber | undefined> {
  return db.maybeOne<Subscriber>(find(sql`s.id = ${id}`));
}

/** Locks it for a change, before its readers and errands. */
export function lockById(tx: Db, id: string): Promise<Subscriber | undefined> {
  return tx.maybeOne<Subscriber>(sql`${find(sql`s.id = ${id}`)} for update`);
}

export function findByName(db: Db, name: string): Promise<Subscriber | undefined> {
  return db.maybeOne<Subscriber>(find(sql`s.name = ${name}`));
}

/** Locks the state of the subscriptions until the commit, so changes of subscribers take turns, and couriers read them again. */
export async function bumpRevision(tx: Db): Promise<{ fanned: number; revision: number }> {
  return tx.one(sql`update bus_state set revision = revision + 1 returning fanned, revision`);
}

export async function countSubscribers(db: Db): Promise<number> {
  return (await db.one<{ n: number }>(sql`select count(*)::integer as n from subscriber`)).n;
}

export type NewSubscriber = SubscriberSettings & Pick<Subscriber, 'id' | 'name' | 'identity' | 'created_at'>;

export async function insertSubscriber(tx: Db, s: NewSubscriber): Promise<void> {
  await tx.exec(sql`
    insert into subscriber (id, name, identity, kind, callback, credential, rate, max_attempts, max_age_ms, request_ms, created_at)
    values (${s.id}, ${s.name}, ${s.identity}, ${s.kind}, ${s.callback}, ${s.credential}, ${s.rate}, ${s.max_attempts},
            ${s.max_age_ms}, ${s.request_ms}, ${s.created_at})`);
}

export async function updateSettings(tx: Db, id: string, s: SubscriberSettings): Promise<void> {
  await tx.exec(sql`
    update subscriber
       set kind = ${s.kind}, callback = ${s.callback}, credential = ${s.credential}, rate = ${s.rate},
           max_attempts = ${s.max_attempts}, max_age_ms = ${s.max_age_ms}, request_ms = ${s.request_ms}
     where id = ${id}`);
}

export async function updateState(tx: Db, id: string, state: SubscriberState, reason: string | null): Promise<void> {
  await tx.exec(sql`update subscriber set state = ${state}, reason = ${reason} where id = ${id}`);
}

/** A subscriber that continues begins without a record of failures. */
export async function clearFailures(tx: Db, id: string): Promise<void> {
  await tx.exec(sql`update subscriber set first_failed_at = null where id = ${id}`);
  await tx.exec(sql`update reader set failures = 0, first_failed_at = null where subscriber_id = ${id}`);
}

export async function updateSecrets(tx: Db, id: string, secrets: readonly Buffer[]): Promise<void> {
  await tx.exec(sql`update subscriber set secrets = ${secrets}::bytea[] where id = ${id}`);
}

export async function updateIdentity(tx: Db, id: string, identity: string): Promise<void> {
  await tx.exec(sql`update subscriber set identity = ${identity} where id = ${id}`);
}

/** Removes it with its readers, revisions, replays and dead letters. Its deliveries are left to retention. */
export async function deleteSubscriber(tx: Db, id: string): Promise<void> {
  await tx.exec(sql`delete from subscriber where id = ${id}`);
}
