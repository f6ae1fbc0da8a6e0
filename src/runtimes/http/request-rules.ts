/** What a request may contain. Documents are checked with these rules where they can be, and each request before it is sent. */

/** These are set by the runtime itself, or would change how the request is framed. */
const reservedHeaders: ReadonlySet<string> = new Set([
  'connection',
  'content-length',
  'expect',
  'host',
  'keep-alive',
  'millrace-answer-url',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/** A token of RFC 9110 without `_`: header names are variables of the task, and those of Millrace have one. */
const headerName = /^[A-Za-z0-9!#$%&'*+.^`|~-]{1,200}$/;
/** Tabs, visible characters and Latin-1, as Node sends them. */
const headerText = /^[\t\x20-\x7e\x80-\xff]*$/;

export function headerNameFault(name: string): string | undefined {
  if (!headerName.test(name)) return 'must be the name of a header, such as X-Request-Id, without _';
  return reservedHeaders.has(name.toLowerCase()) ? 'is set by Millrace' : undefined;
}

export function headerValueFault(value: string): string | undefined {
  return headerText.test(value) ? undefined : 'must be one line of Latin-1 characters';
}

export function urlFault(text: string): string | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol))
    return 'must be a URL such as https://api.example.com/orders';
  if (url.username !== '' || url.password !== '')
    return 'must not contain a password: give it as a header, from the stash';
  return undefined;
}
