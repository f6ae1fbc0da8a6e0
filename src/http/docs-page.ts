/** Renders the OpenAPI description as one plain page that needs no script and can be searched in the browser. */

type Json = Record<string, unknown>;

const style = `
  :root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; }
  body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
  h2 { margin-top: 2.5rem; border-bottom: 1px solid color-mix(in srgb, currentColor 25%, transparent); }
  summary { cursor: pointer; padding: .3rem 0; } summary code { font-weight: 600; }
  pre { overflow-x: auto; padding: .8rem; border-radius: 6px; background: color-mix(in srgb, currentColor 8%, transparent); }
  .allow { opacity: .7; font-size: .85em; }`;

const escapes: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };
const escape = (text: unknown): string => String(text).replaceAll(/[&<>"]/g, (c) => escapes[c] ?? c);

export function renderDocsPage(api: Json): string {
  const paths = Object.entries(api['paths'] as Record<string, Record<string, Json>>);
  const operations = paths.flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, op]) => ({ path, method, op })),
  );
  const tags = [...new Set(operations.map(({ op }) => (op['tags'] as string[])[0] ?? ''))];
  const sections = tags.map((tag) => {
    const own = operations.filter(({ op }) => (op['tags'] as string[])[0] === tag);
    return `<section><h2>${escape(tag)}</h2>${own.map(renderOperation).join('')}</section>`;
  });
  const info = api['info'] as Json;
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Millrace API</title><style>${style}</style></head><body>
<h1>Millrace API <small>${escape(info['version'])}</small></h1><p>${escape(info['description'])}</p>
<p>The machine-readable form is <a href="/openapi.json">openapi.json</a>.</p>${sections.join('')}</body></html>`;
}

function renderOperation({ path, method, op }: { path: string; method: string; op: Json }): string {
  const details = {
    parameters: op['parameters'],
    body: (op['requestBody'] as Json | undefined)?.['content'],
    answers: op['responses'],
  };
  const allow = (op['x-millrace-allow'] as string[]).join(', ');
  return `<details><summary><code>${escape(method.toUpperCase())} ${escape(path)}</code> ${escape(op['summary'])}
<span class="allow">(${escape(allow)})</span></summary><pre>${escape(JSON.stringify(details, null, 2))}</pre></details>`;
}
