/**
 * Dumps a schema as text, from the catalog: one line per column, constraint, index, type and function. The dump of the
 * migrations' result is committed in `schema/` and compared, so that reviewers see every change of the schema.
 */
import { createHash } from 'node:crypto';
import { type Db, sql } from '../../src/kernel/sql.ts';

type Line = { line: string };

export async function dumpSchema(db: Db, schema: string): Promise<string> {
  const parts = [
    await columns(db, schema),
    await constraints(db, schema),
    await indexes(db, schema),
    await types(db, schema),
    await functions(db, schema),
  ];
  return `${parts.flat().join('\n')}\n`;
}

async function lines(rows: Promise<Line[]>): Promise<string[]> {
  return (await rows).map((row) => row.line);
}

function columns(db: Db, schema: string): Promise<string[]> {
  return lines(
    db.rows<Line>(sql`
      select format('column %s.%s %s%s%s', c.relname, a.attname, format_type(a.atttypid, a.atttypmod),
                    case when a.attnotnull then ' not null' else '' end,
                    coalesce(' default ' || pg_get_expr(d.adbin, d.adrelid), '')) as line
        from pg_class c
        join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
        left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
       where c.relnamespace = ${schema}::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
       order by c.relname, a.attnum`),
  );
}

function constraints(db: Db, schema: string): Promise<string[]> {
  return lines(
    db.rows<Line>(sql`
      select format('constraint %s on %s: %s', k.conname, c.relname, pg_get_constraintdef(k.oid)) as line
        from pg_constraint k
        join pg_class c on c.oid = k.conrelid
       where k.connamespace = ${schema}::regnamespace and not c.relispartition and k.contype <> 'n'
       order by c.relname, k.conname`),
  );
}

function indexes(db: Db, schema: string): Promise<string[]> {
  return lines(
    db.rows<Line>(sql`
      select format('index %s', replace(pg_get_indexdef(i.indexrelid), ${schema} || '.', '')) as line
        from pg_index i
        join pg_class c on c.oid = i.indrelid
       where c.relnamespace = ${schema}::regnamespace and not c.relispartition
       order by 1`),
  );
}

function types(db: Db, schema: string): Promise<string[]> {
  return lines(
    db.rows<Line>(sql`
      select format('type %s: %s', t.typname, string_agg(e.enumlabel, ', ' order by e.enumsortorder)) as line
        from pg_type t
        join pg_enum e on e.enumtypid = t.oid
       where t.typnamespace = ${schema}::regnamespace
       group by t.typname
       order by t.typname`),
  );
}

/** A function's body is too long for a line; its hash shows whether it changed. */
async function functions(db: Db, schema: string): Promise<string[]> {
  const rows = await db.rows<{ signature: string; source: string }>(sql`
    select format('%s(%s) returns %s', p.proname, pg_get_function_arguments(p.oid), pg_get_function_result(p.oid)) as signature,
           p.prosrc as source
      from pg_proc p
     where p.pronamespace = ${schema}::regnamespace
     order by 1`);
  return rows.map(
    (row) => `function ${row.signature} ${createHash('sha256').update(row.source).digest('hex').slice(0, 12)}`,
  );
}
