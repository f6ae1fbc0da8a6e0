/** Checks a subscriber's callback before it is stored. The courier checks the address again each time it connects. */

/** Why the URL cannot be a callback, in Routemaster's words; undefined: it can. */
export function callbackFault(text: string, allowHttp: boolean): string | undefined {
  if (text === '') return 'URL is missing';
  if (!URL.canParse(text)) return 'URL is invalid';
  const url = new URL(text);
  if (url.protocol !== 'https:' && !(allowHttp && url.protocol === 'http:')) return 'URL is not HTTPS';
  if (url.search !== '' || text.includes('?')) return 'URL has query string';
  if (url.hash !== '' || text.includes('#')) return 'URL has a fragment';
  // the password would be stored and listed in clear: `uuid` is the user name
  if (url.username !== '' || url.password !== '') return 'URL has a user name: set `uuid` instead';
  return undefined;
}
