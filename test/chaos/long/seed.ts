/** The seed of the long suites' dice: a different number each time, or CHAOS_SEED to repeat one. */
export const seed = Number(process.env['CHAOS_SEED'] ?? Date.now() % 1_000_000);
