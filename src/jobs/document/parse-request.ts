/** Parses a job document with a parser that does not block the event loop. */
import type { DocumentParser } from '../../documents/parser.ts';
import type { DocumentFormat } from '../../documents/text.ts';
import { type DocumentLimits, documentLimits } from './limits.ts';
import { type ParsedJob, parseJobText } from './parse-job.ts';

export interface JobParseRequest {
  readonly text: string;
  readonly format: DocumentFormat;
  /** The id of the tenant whose turn the document takes. */
  readonly tenant: string;
  readonly limits?: DocumentLimits;
  /** Aborts when the client has disconnected. */
  readonly signal?: AbortSignal;
}

export function parseJobDocument(
  parser: DocumentParser,
  { text, format, tenant, limits = documentLimits, signal }: JobParseRequest,
): Promise<ParsedJob> {
  return parser.parse({
    input: { kind: 'job', text, format, limits },
    parseHere: () => parseJobText(text, format, limits),
    tenant,
    ...(signal !== undefined && { signal }),
  });
}
