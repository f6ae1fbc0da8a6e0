/** SQL fragments that match names containing every word, ignoring case. For the search and for lists with a filter. */
import { type Sql, sql } from '../../kernel/sql.ts';

export function wordsOf(text: string): string[] {
  return text.split(/\s+/).filter((word) => word !== '');
}

/** Patterns of `like` that match the words anywhere. */
export function patternsOf(words: readonly string[]): string[] {
  return words.map((word) => `%${escapeLike(word)}%`);
}

/** Escapes the special characters of `like`. */
export function escapeLike(text: string): string {
  return text.replaceAll(/[\\%_]/g, '\\$&');
}

/** The database converts both sides to lower case, so that they follow the same rules. */
export const wordsIn = (text: Sql, patterns: readonly string[]): Sql =>
  sql`lower(${text}) like all (array(select lower(p) from unnest(${patterns}::text[]) as w (p)))`;
