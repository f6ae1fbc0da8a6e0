/** Versions of releases and engines, in the order of Semantic Versioning 2.0 (§11): a pre-release comes before its release. */

const shape = /^(\d+)\.(\d+)\.(\d+)(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?$/;
const longest = 100;

export function isVersion(text: string): boolean {
  return text.length <= longest && shape.test(text);
}

/** Negative if `a` comes first, positive if `b` does. A text that is not a version comes before every version. */
export function compareVersions(a: string, b: string): number {
  const [left, right] = [shape.exec(a), shape.exec(b)];
  if (left === null || right === null) return Number(left !== null) - Number(right !== null) || compareTexts(a, b);
  return compareNumbers(left.slice(1, 4), right.slice(1, 4)) || comparePreReleases(left[4], right[4]);
}

export function isNewer(version: string, than: string): boolean {
  return compareVersions(version, than) > 0;
}

/**
 * The default target of an upgrade from `from`: the newest stable version. From a pre-release, or if there is no stable version,
 * it is the newest version of all. Builds of one version are ordered by name.
 */
export function newestFor(from: string | null, versions: readonly string[]): string | undefined {
  const sorted = versions.toSorted().sort(compareVersions);
  const stable = sorted.filter((version) => !isPreRelease(version));
  const takesAll = stable.length === 0 || (from !== null && isPreRelease(from));
  return (takesAll ? sorted : stable).at(-1);
}

function isPreRelease(version: string): boolean {
  return shape.exec(version)?.[4] !== undefined;
}

function compareNumbers(a: readonly string[], b: readonly string[]): number {
  const at = a.findIndex((part, i) => Number(part) !== Number(b[i]));
  return at < 0 ? 0 : Number(a[at]) - Number(b[at]);
}

function comparePreReleases(a: string | undefined, b: string | undefined): number {
  if (a === undefined || b === undefined) return Number(a === undefined) - Number(b === undefined);
  const [left, right] = [a.split('.'), b.split('.')];
  const at = left.findIndex((part, i) => part !== right[i]);
  if (at < 0) return left.length - right.length;
  return right[at] === undefined ? 1 : compareIdentifiers(left[at] ?? '', right[at]);
}

/** Numbers by value, before all words; words alphabetically. */
function compareIdentifiers(a: string, b: string): number {
  const [left, right] = [/^\d+$/.test(a), /^\d+$/.test(b)];
  if (left && right) return Number(a) - Number(b);
  return left === right ? compareTexts(a, b) : Number(right) - Number(left);
}

function compareTexts(a: string, b: string): number {
  return Number(a > b) - Number(a < b);
}
