/** The description of the API as JSON (`/openapi.json`) and as a page (`/docs`). Generated once, at the first request. */
import { gzipSync } from 'node:zlib';
import { renderDocsPage } from '../../http/docs-page.ts';
import { type FixedAnswer, makeFixedAnswer } from '../../http/fixed-answer.ts';

export interface Description {
  readonly openapi: FixedAnswer;
  readonly docs: FixedAnswer;
}

export function makeDescription(describe: () => Record<string, unknown>): Description {
  let json: FixedAnswer | undefined;
  let page: FixedAnswer | undefined;
  return {
    openapi: (request) => (json ??= fixed(JSON.stringify(describe()), { 'content-type': 'application/json' }))(request),
    docs: (request) => (page ??= fixed(renderDocsPage(describe()), pageHeaders))(request),
  };
}

const pageHeaders = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
};

function fixed(text: string, headers: Readonly<Record<string, string>>): FixedAnswer {
  const plain = Buffer.from(text);
  return makeFixedAnswer({ plain, gzipped: gzipSync(plain), headers: { ...headers, 'cache-control': 'no-cache' } });
}
