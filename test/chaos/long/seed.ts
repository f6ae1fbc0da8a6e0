/** What the dice of a long suite start from: another number each time, or CHAOS_SEED to repeat one. */
export const seed = Number(process.env['CHAOS_SEED'] ?? Date.now() % 1_000_000);
