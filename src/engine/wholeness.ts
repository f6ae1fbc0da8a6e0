/**
 * Checks that a tenant's schema is complete: every table, index and foreign key of the migrations and every function of the
 * set exists under its name.
 *
 * A restore creates the tables, fills them one after the other, and creates indexes and keys last. Until then the version and
 * all migrations are recorded, but triggers and tasks may be missing, and no constraint prevents duplicate rows. A scheduler
 * that started now would read half of the data, and make the restore fail. If a table or function was renamed or dropped,
 * every use of it fails.
 */
import type { ClientBase } from 'pg';
import { missingPartsPath } from '../contract/engine.ts';
import { MillraceError } from '../errors.ts';
import { onClient, sql } from '../kernel/sql.ts';

/** Indexes and foreign keys that the migrations create, without those of the logs' partitions. */
export const indexesAndKeys: readonly string[] = `
  active_instant_pkey activity_pkey backfill_job backfill_job_id_fkey backfill_job_id_name_key backfill_open
  backfill_pkey backfill_trigger_backfill_id_fkey backfill_trigger_pkey backfill_trigger_trigger_id_fkey bus_event_pkey
  bus_event_topic bus_state_pkey bus_topic_name bus_topic_pkey catchup_pkey catchup_trigger_id_fkey commit_pkey
  dead_letter_at dead_letter_dropped dead_letter_pkey dead_letter_subscriber_id_batch_key dead_letter_subscriber_id_fkey delivery_at
  delivery_pkey errand_hold_last errand_hold_pkey errand_hold_worker errand_pkey errand_poisoned errand_ready errand_scheduled errand_worker_pkey event_people
  event_pkey event_reader_pkey event_subject event_topic execution_document_pkey execution_ended execution_flow
  execution_key execution_owner execution_parent execution_pkey execution_status firing_pkey flow_name flow_pkey
  flow_version_pkey gate_pkey gate_pool global_stash_pkey held_pkey imported_job_job_id_fkey imported_job_pkey
  inbox_at inbox_pkey installation_pkey
  instant_params_pkey job_name job_pkey job_project_id_fkey job_stash_job_id_fkey job_stash_pkey job_version_job_id_fkey
  job_version_pkey label_pkey label_value lease_pkey live_cancel live_gate live_held live_parked live_pkey live_ready
  live_task log_pkey low_water_pkey low_water_to low_water_trigger_id_fkey lowered_pkey migration_pkey node_run_attempt
  node_run_pkey outbox_pkey project_name project_pkey project_stash_pkey project_stash_project_id_fkey publish_key_at
  publish_key_pkey reader_pkey reader_subscriber_id_fkey replay_pkey replay_subscriber replay_subscriber_id_fkey
  retry_due retry_pkey retry_task run_ended run_failed run_pkey run_task snapshot_pkey subscriber_activity_pkey
  subscriber_identity_key subscriber_name_key subscriber_pkey subscription_pkey subscription_subscriber_id_fkey
  task_edge_child task_edge_child_id_fkey task_edge_parent_id_fkey task_edge_pkey task_job_id_fkey task_job_id_name_key
  task_pkey timer_due timer_pkey token_pkey topic_activity_pkey topic_count_pkey topic_name_key topic_pkey tracker_pkey
  tracker_topic trigger_edge_pkey trigger_edge_task trigger_edge_task_id_fkey trigger_edge_trigger_id_fkey
  trigger_job_id_fkey trigger_job_id_name_key trigger_pkey workitem_assignee workitem_attempt workitem_claimed
  workitem_open workitem_pkey workitem_team
`
  .trim()
  .split(/\s+/);

export const tables: readonly string[] = `
  active_instant activity backfill backfill_trigger bus_event bus_state bus_topic catchup commit dead_letter delivery
  errand errand_hold errand_worker event event_reader execution execution_document firing flow flow_version gate global_stash held
  imported_job inbox installation instant_params job job_stash job_version label lease live log low_water lowered migration node_run
  outbox project project_stash publish_key reader replay retry run snapshot subscriber subscriber_activity subscription
  task task_edge timer token topic topic_activity topic_count tracker trigger trigger_edge workitem
`
  .trim()
  .split(/\s+/);

/** Missing parts that the error lists by name. */
const maxNamedParts = 3;

/** Throws if parts are missing. Additional parts are allowed, such as an operator's own index. */
export async function rejectIncomplete(client: ClientBase, functions: readonly string[]): Promise<void> {
  const missing = await findMissingParts(client, functions);
  if (missing.length === 0) return;
  const more = missing.length > maxNamedParts ? ` and ${missing.length - maxNamedParts} more` : '';
  const message = `parts are missing (${missing.slice(0, maxNamedParts).join(', ')}${more}): a restore is still under way, or they were dropped or renamed`;
  throw new MillraceError('bad_configuration', message, { faults: [{ path: missingPartsPath, message }] });
}

/** Lists tables and functions first, because a missing table takes its indexes and keys with it. */
async function findMissingParts(client: ClientBase, functions: readonly string[]): Promise<string[]> {
  const rows = await onClient(client).rows<{ name: string }>(sql`
    with schema as (select to_regnamespace('millrace') as oid)
    select 1 as rank, 'table ' || name as name
      from unnest(${tables}::text[]) name, schema
     where not exists (
             select from pg_class where relname = name and relnamespace = schema.oid and relkind in ('r', 'p'))
     union all
    select 2, 'function ' || name
      from unnest(${functions}::text[]) name, schema
     where not exists (select from pg_proc where proname = name and pronamespace = schema.oid)
     union all
    select 3, name
      from unnest(${indexesAndKeys}::text[]) name, schema
     where not exists (
             select from pg_class join pg_index on indexrelid = pg_class.oid
              where relname = name and relnamespace = schema.oid and indisvalid)
       and not exists (
             select from pg_constraint where conname = name and connamespace = schema.oid and contype = 'f')
     order by rank, name`);
  return rows.map(({ name }) => name);
}
