/**
 * Deals the free places of polls out among tenants, so that none takes all while others have work: of each poll everyone
 * gets an equal share, and what cannot be divided goes to those who come first, from poll to poll the next ones.
 * Answers, for each tenant, how many places of each poll are its.
 */
export function dealPlaces(free: readonly number[], tenants: number): number[][] {
  const shares = Array.from({ length: tenants }, () => free.map(() => 0));
  let next = 0;
  free.forEach((places, poll) => {
    const each = Math.floor(places / tenants);
    const rest = places % tenants;
    shares.forEach((share, tenant) => {
      const inLine = (tenant - next + tenants) % tenants;
      share[poll] = each + (inLine < rest ? 1 : 0);
    });
    next = (next + rest) % tenants;
  });
  return shares;
}

interface Portion {
  readonly places: number;
}

export function sumOf(portions: readonly Portion[]): number {
  return portions.reduce((sum, { places }) => sum + places, 0);
}

/** So many places of them at most, as evenly as can be. */
export function atMost<P extends Portion>(portions: readonly P[], most: number): readonly P[] {
  if (sumOf(portions) <= most) return portions;
  let left = most;
  return portions
    .toSorted((a, b) => a.places - b.places)
    .map((portion, i) => {
      const places = Math.min(portion.places, Math.ceil(left / (portions.length - i)));
      left -= places;
      return { ...portion, places };
    })
    .filter(({ places }) => places > 0);
}
