/** The id of a batch: `<8 hex digits of the subscriber>_<strand>_<first event>_<last event>`. */
interface BatchRange {
  readonly strand: number;
  readonly first: number;
  readonly last: number;
}

const form = /^[0-9a-f]{8}_(\d+)_(\d+)_(\d+)$/;

/** Undefined for other ids, such as those of tests. */
export function parseBatchId(id: string): BatchRange | undefined {
  const found = form.exec(id);
  if (found === null) return undefined;
  const [, strand, first, last] = found;
  return { strand: Number(strand), first: Number(first), last: Number(last) };
}
