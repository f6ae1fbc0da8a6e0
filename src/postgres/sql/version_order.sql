-- Returns an array that compares (collate "C") as versions do in src/kernel/text/version.ts. Null: no engine can have this version.
--
-- Numbers compare by value and come before words. A release comes after its pre-releases: '~' is greater than every
-- character of a word. Build suffixes are ignored.
create or replace function version_order(p_version text) returns text[] language sql immutable set search_path from current as $$
  select array(
    select case when part ~ '^[0-9]+$' then '0' || lpad(part, 100, '0') else '1' || part end
      from (select split_part(p_version, '+', 1) as known) bare
     cross join lateral unnest(string_to_array(split_part(known, '-', 1), '.')
             || coalesce(string_to_array(substring(known from '-(.*)'), '.'), array['~'])) with ordinality as parts (part, place)
     order by place)
   where length(p_version) <= 100 and p_version ~
     '^[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?(\+[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?$'
$$;
