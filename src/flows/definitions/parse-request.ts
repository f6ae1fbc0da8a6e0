/** Parses a flow document with a parser that does not block the event loop. */
import type { DocumentParser } from '../../documents/parser.ts';
import type { DocumentFormat } from '../../documents/text.ts';
import { type ReadDefinition, readDefinition } from './read-definition.ts';

export interface FlowParseRequest {
  readonly text: string;
  readonly format: DocumentFormat;
  /** The id of the tenant whose turn the document takes. */
  readonly tenant: string;
  /** Aborts when the client has disconnected. */
  readonly signal: AbortSignal;
}

export function parseFlowDocument(
  parser: DocumentParser,
  { text, format, tenant, signal }: FlowParseRequest,
): Promise<ReadDefinition> {
  const parseHere = (): ReadDefinition => readDefinition(text, format);
  return parser.parse({ input: { kind: 'flow', text, format }, parseHere, tenant, signal });
}
