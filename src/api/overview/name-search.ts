/** Words in names, whatever the case: every one must occur. Fragments for the search and for lists that filter by words. */
import { type Sql, sql } from '../../kernel/sql.ts';

export function wordsOf(text: string): string[] {
  return text.split(/\s+/).filter((word) => word !== '');
}

/** What `like` takes: the words as they are, anywhere. */
export function patternsOf(words: readonly string[]): string[] {
  return words.map((word) => `%${literally(word)}%`);
}

/** A text without meaning to `like`. */
export function literally(text: string): string {
  return text.replaceAll(/[\\%_]/g, '\\$&');
}

/** Both sides are put into lower case by the database, so that they agree about letters. */
export const wordsIn = (text: Sql, patterns: readonly string[]): Sql =>
  sql`lower(${text}) like all (array(select lower(p) from unnest(${patterns}::text[]) as w (p)))`;
