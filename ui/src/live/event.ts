/**
 * An event of the log as the stream carries it: one unnamed message each, `id` the sequence number, `data` a JSON object
 * with topic, type, subject, actor, cause, at and body.
 */
export interface LiveEvent {
  readonly seq: number;
  readonly topic: string;
  readonly type: string;
  readonly subject: string | null;
  readonly actor: string | null;
  readonly at: string;
  readonly body: Readonly<Record<string, unknown>>;
}

/** Reads a message; undefined when it is not an event, which is then passed over. */
export function readEvent(id: string, data: string): LiveEvent | undefined {
  const seq = Number(id);
  const fields = readObject(data);
  if (fields === undefined || !Number.isSafeInteger(seq) || id === '') return undefined;
  const { topic, type, at } = fields;
  if (typeof topic !== 'string' || typeof type !== 'string' || typeof at !== 'string') return undefined;
  const body = typeof fields['body'] === 'string' ? readObject(fields['body']) : asObject(fields['body']);
  return { seq, topic, type, at, subject: text(fields['subject']), actor: text(fields['actor']), body: body ?? {} };
}

/** A field of an event's body that should be text, say an id. */
export function textOf(event: LiveEvent, field: string): string | undefined {
  return text(event.body[field]) ?? undefined;
}

function text(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}

function readObject(json: string): Record<string, unknown> | undefined {
  try {
    return asObject(JSON.parse(json));
  } catch {
    return undefined;
  }
}

function asObject(value: unknown): Record<string, unknown> | undefined {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined;
}
