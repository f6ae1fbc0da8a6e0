/** A job's document as text to read and write: YAML, made from the JSON that is kept. */
import { Document, isScalar, visit } from 'yaml';

/** The order in which people write a document; what is not named keeps its place after these. */
const fieldOrder = ['uuid', 'project', 'name', 'description', 'paused', 'params'];

/** Lists of plain values that are no longer than this stand on one line, as people write commands and dependencies. */
const shortList = 80;

export function yamlOf(document: unknown): string {
  const made = new Document(inOrder(document), { aliasDuplicateObjects: false });
  visit(made, {
    Seq: (_, list) => {
      list.flow = list.items.every(isScalar) && JSON.stringify(list.items).length <= shortList;
    },
  });
  return made.toString({ lineWidth: 110, flowCollectionPadding: false });
}

function inOrder(document: unknown): unknown {
  if (typeof document !== 'object' || document === null || Array.isArray(document)) return document;
  const known = fieldOrder.filter((field) => field in document);
  const entries = Object.entries(document);
  return Object.fromEntries([
    ...entries.filter(([field]) => known.includes(field)).sort(([a], [b]) => known.indexOf(a) - known.indexOf(b)),
    ...entries.filter(([field]) => !known.includes(field)),
  ]);
}

/** The same of a document that is JSON text. */
export function yamlOfJson(json: string): string {
  return yamlOf(JSON.parse(json));
}
