/** Creates the topics and subscribers of an export, in one commit. Those that exist are left as they are. */
import { MillraceError } from '../../errors.ts';
import { type Recording, recording } from '../../events/append.ts';
import { newId } from '../../kernel/id.ts';
import { type Db, sql } from '../../kernel/sql.ts';
import type { Author, BusContext } from './context.ts';
import { bumpRevision, insertSubscriber, updateSecrets } from './queries.ts';
import { checkTermsSize, defaultTerms, writeRevision } from './revisions.ts';
import { type Credentials, makeOpener } from './sealing.ts';
import { announceSubscribers, noteSubscribers } from './standing.ts';
import { checkTopics, findOrCreateTopics } from './topics.ts';
import { mergeSettings, mergeTerms, type Wish } from './wish.ts';

interface ImportedTopic {
  readonly name: string;
  readonly owner: string | null;
  readonly owner_name: string;
}

type ImportedSubscriber = Omit<Wish, 'callback' | 'topics'> & {
  readonly name: string;
  readonly identity: string;
  readonly callback: string | null;
  readonly topics: readonly string[];
  readonly sealed: string | null;
};

interface Import {
  readonly topics: readonly ImportedTopic[];
  readonly subscribers: readonly ImportedSubscriber[];
  readonly passphrase?: string | undefined;
}

interface Imported {
  readonly topics: number;
  readonly subscribers: number;
  readonly skipped: readonly string[];
}

export async function importBus(ctx: BusContext, author: Author, wish: Import): Promise<Imported> {
  const credentials = await openAll(wish);
  for (const subscriber of wish.subscribers) checkTopics(subscriber.topics);
  await announceSubscribers(ctx, wish.subscribers.length);
  const result = await recording(ctx.db, author, async (tx) => {
    await bumpRevision(tx);
    const topics = await insertTopics(tx, wish.topics, author.at);
    const fresh = await findNew(tx, wish.subscribers);
    for (const one of fresh) await create(ctx, tx, author, one, credentials.get(one.name));
    await checkTermsSize(tx);
    const skipped = wish.subscribers.filter((one) => !fresh.includes(one)).map(({ name }) => name);
    tx.record('millrace_bus', { type: 'bus.imported', subject: null, body: { topics, subscribers: fresh.length } });
    return { topics, subscribers: fresh.length, skipped };
  });
  await noteSubscribers(ctx);
  ctx.hints.send('bus');
  return result;
}

/** Before anything is written. */
async function openAll({ subscribers, passphrase }: Import): Promise<Map<string, Credentials>> {
  const opened = new Map<string, Credentials>();
  if (passphrase === undefined) return opened;
  const opener = makeOpener(passphrase);
  for (const { name, sealed } of subscribers) {
    if (sealed === null) continue;
    const credentials = await opener.open(name, sealed);
    if (credentials === undefined) {
      throw new MillraceError('bad_request', `body.passphrase: it does not open the credentials of ${name}`);
    }
    opened.set(name, credentials);
  }
  return opened;
}

function insertTopics(tx: Db, topics: readonly ImportedTopic[], at: Date): Promise<number> {
  return tx.exec(sql`
    insert into bus_topic (name, owner, owner_name, created_at)
    select t.name, t.owner, t.owner_name, ${at}::timestamptz
      from unnest(
        ${topics.map((t) => t.name)}::text[], ${topics.map((t) => t.owner)}::uuid[], ${topics.map((t) => t.owner_name)}::text[]
      ) as t (name, owner, owner_name)
     where t.name not like 'millrace\\_%'
     order by t.name
    on conflict (name) where deleted_at is null do nothing`);
}

/** Neither their name nor their key has a subscriber. Of several with the same name or key, the first. */
async function findNew(tx: Db, subscribers: readonly ImportedSubscriber[]): Promise<ImportedSubscriber[]> {
  const rows = await tx.rows<{ name: string; identity: string }>(sql`
    select name, identity from subscriber
     where name = any (${subscribers.map((s) => s.name)}::text[]) or identity = any (${subscribers.map((s) => s.identity)}::uuid[])`);
  const taken = new Set(rows.flatMap(({ name, identity }) => [`name ${name}`, `key ${identity}`]));
  return subscribers.filter(({ name, identity }) => {
    const marks = [`name ${name}`, `key ${identity.toLowerCase()}`];
    const isNew = marks.every((mark) => !taken.has(mark));
    if (isNew) for (const mark of marks) taken.add(mark);
    return isNew;
  });
}

async function create(
  ctx: BusContext,
  tx: Recording,
  author: Author,
  one: ImportedSubscriber,
  credentials: Credentials | undefined,
): Promise<void> {
  const id = newId();
  const wish: Wish = { ...one, callback: one.callback ?? undefined, uuid: credentials?.uuid ?? null };
  const none = { kind: 'http', callback: null, credential: null, rate: null } as const;
  const tools = {
    allowHttp: ctx.settings.bus?.allowHttp === true,
    encrypt: (plain: Buffer) => ctx.secrets.encrypt(plain),
  };
  const settings = mergeSettings({ ...none, max_attempts: null, max_age_ms: null, request_ms: null }, wish, tools);
  await insertSubscriber(tx, { ...settings, id, name: one.name, identity: one.identity, created_at: author.at });
  const secrets = (credentials?.secrets ?? []).map((text) => ctx.secrets.encrypt(Buffer.from(text, 'base64')));
  if (secrets.length > 0) await updateSecrets(tx, id, secrets);
  const topics = await findOrCreateTopics(tx, one.topics, author.at);
  await writeRevision(tx, id, mergeTerms(defaultTerms, wish, topics));
}
