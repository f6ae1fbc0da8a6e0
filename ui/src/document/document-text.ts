/** A document as YAML for editing, made from the stored JSON. */
import { Document, isScalar, visit } from 'yaml';

/** The usual order of fields; other fields follow in their own order. */
const fieldOrder = ['uuid', 'flow', 'project', 'name', 'description', 'paused', 'params'];

/** Lists of plain values up to this length are written on one line, as people write commands and dependencies. */
const maxInlineLength = 80;

export function yamlOf(document: unknown): string {
  const made = new Document(inOrder(document), { aliasDuplicateObjects: false });
  visit(made, {
    Seq: (_, list) => {
      list.flow = list.items.every(isScalar) && JSON.stringify(list.items).length <= maxInlineLength;
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

/** The same for a document given as JSON text. */
export function yamlOfJson(json: string): string {
  return yamlOf(JSON.parse(json));
}
