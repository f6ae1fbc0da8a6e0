/** Reads `Accept-Encoding` in one pass. Anybody may send it, so its cost must not grow faster than its length. */

/** Browsers send about 30 characters. A longer header is taken to accept no compression. */
const maxChars = 1_000;

/** `gzip;q=0` is a refusal. */
export function takesGzip(header: string | null): boolean {
  if (header === null || header.length > maxChars) return false;
  return header.split(',').some((each) => {
    const [coding = '', weight] = each.split(';').map((part) => part.trim().toLowerCase());
    return coding === 'gzip' && (weight === undefined || isPositive(weight));
  });
}

function isPositive(weight: string): boolean {
  return weight.startsWith('q=') && Number(weight.slice(2)) > 0;
}
