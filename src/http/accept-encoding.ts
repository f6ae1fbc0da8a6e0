/** Parses `Accept-Encoding` in one pass. Any client may send it, so the cost must not grow faster than its length. */

/** Browsers send about 30 characters. A header beyond this limit counts as accepting no compression. */
const maxChars = 1_000;

/** `gzip;q=0` means that the client does not accept gzip. */
export function acceptsGzip(header: string | null): boolean {
  if (header === null || header.length > maxChars) return false;
  return header.split(',').some((each) => {
    const [coding = '', weight] = each.split(';').map((part) => part.trim().toLowerCase());
    return coding === 'gzip' && (weight === undefined || isPositive(weight));
  });
}

function isPositive(weight: string): boolean {
  return weight.startsWith('q=') && Number(weight.slice(2)) > 0;
}
