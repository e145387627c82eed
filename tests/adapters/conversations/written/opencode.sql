CREATE TABLE `session` (
          `id` text PRIMARY KEY,
          `project_id` text NOT NULL,
          `workspace_id` text,
          `parent_id` text,
          `slug` text NOT NULL,
          `directory` text NOT NULL,
          `path` text,
          `title` text NOT NULL,
          `version` text NOT NULL,
          `share_url` text,
          `summary_additions` integer,
          `summary_deletions` integer,
          `summary_files` integer,
          `summary_diffs` text,
          `metadata` text,
          `cost` real DEFAULT 0 NOT NULL,
          `tokens_input` integer DEFAULT 0 NOT NULL,
          `tokens_output` integer DEFAULT 0 NOT NULL,
          `tokens_reasoning` integer DEFAULT 0 NOT NULL,
          `tokens_cache_read` integer DEFAULT 0 NOT NULL,
          `tokens_cache_write` integer DEFAULT 0 NOT NULL,
          `revert` text,
          `permission` text,
          `agent` text,
          `model` text,
          `time_created` integer NOT NULL,
          `time_updated` integer NOT NULL,
          `time_compacting` integer,
          `time_archived` integer,
          CONSTRAINT `fk_session_project_id_project_id_fk` FOREIGN KEY (`project_id`) REFERENCES `project`(`id`) ON DELETE CASCADE
        );
insert into session values ('ses_e0cfd8808ffeiS4PNt8SlQCgtJ', 'global', NULL, NULL, 'quick-cactus', '/home/jane/work', 'home/jane/work', 'New session - 2026-11-19T08:53:07.704Z', '1.18.33', NULL, 0, 0, 0, NULL, NULL, 0.0, 100, 10, 0, 0, 0, NULL, '[{"permission":"question","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"}]', 'build', '{"id":"m","providerID":"loop","variant":"default"}', 1795078387704, 1795078396759, NULL, NULL);
CREATE TABLE `message` (
          `id` text PRIMARY KEY,
          `session_id` text NOT NULL,
          `time_created` integer NOT NULL,
          `time_updated` integer NOT NULL,
          `data` text NOT NULL,
          CONSTRAINT `fk_message_session_id_session_id_fk` FOREIGN KEY (`session_id`) REFERENCES `session`(`id`) ON DELETE CASCADE
        );
insert into message values ('msg_1f3027a88001h1NEu6YXOlNI8U', 'ses_e0cfd8808ffeiS4PNt8SlQCgtJ', 1795078388361, 1795078395144, '{"role":"user","time":{"created":1795078388361},"agent":"build","model":{"providerID":"loop","modelID":"m"},"summary":{"diffs":[]}}');
insert into message values ('msg_1f3028758001Il6hIoHGHOF2rM', 'ses_e0cfd8808ffeiS4PNt8SlQCgtJ', 1795078391640, 1795078393601, '{"parentID":"msg_1f3027a88001h1NEu6YXOlNI8U","role":"assistant","mode":"build","agent":"build","path":{"cwd":"/home/jane/work","root":"/"},"cost":0,"tokens":{"total":55,"input":50,"output":5,"reasoning":0,"cache":{"write":0,"read":0}},"modelID":"m","providerID":"loop","time":{"created":1795078391640,"completed":1795078393600},"finish":"tool-calls"}');
insert into message values ('msg_1f3028f230017AKeNhAv5FDVR0', 'ses_e0cfd8808ffeiS4PNt8SlQCgtJ', 1795078393635, 1795078396659, '{"parentID":"msg_1f3027a88001h1NEu6YXOlNI8U","role":"assistant","mode":"build","agent":"build","path":{"cwd":"/home/jane/work","root":"/"},"cost":0,"tokens":{"total":55,"input":50,"output":5,"reasoning":0,"cache":{"write":0,"read":0}},"modelID":"m","providerID":"loop","time":{"created":1795078393635,"completed":1795078396659},"finish":"stop"}');
CREATE TABLE `part` (
          `id` text PRIMARY KEY,
          `message_id` text NOT NULL,
          `session_id` text NOT NULL,
          `time_created` integer NOT NULL,
          `time_updated` integer NOT NULL,
          `data` text NOT NULL,
          CONSTRAINT `fk_part_message_id_message_id_fk` FOREIGN KEY (`message_id`) REFERENCES `message`(`id`) ON DELETE CASCADE
        );
insert into part values ('prt_1f3027a94001qXIZViNzJ3Al2V', 'msg_1f3027a88001h1NEu6YXOlNI8U', 'ses_e0cfd8808ffeiS4PNt8SlQCgtJ', 1795078391550, 1795078391551, '{"type":"text","text":"\"kind: apple id: 1. Write the release note of version 1.4 with a section Fixed; mail it to jane.doe@example.org, token sk-proj-abcdef0123456789abcdef0123456789 Follow the rules in /home/jane/work/SKILL.md\""}');
insert into part values ('prt_1f3028e34001TruG20wOzQpaQv', 'msg_1f3028758001Il6hIoHGHOF2rM', 'ses_e0cfd8808ffeiS4PNt8SlQCgtJ', 1795078393396, 1795078393414, '{"type":"step-start"}');
insert into part values ('prt_1f3028e50001IT81FmYCFpgGX0', 'msg_1f3028758001Il6hIoHGHOF2rM', 'ses_e0cfd8808ffeiS4PNt8SlQCgtJ', 1795078393424, 1795078393567, '{"type":"tool","tool":"invalid","callID":"c1","state":{"status":"completed","input":{"tool":"view","error":"Model tried to call unavailable tool ''view''. Available tools: bash, edit, glob, grep, invalid, read, skill, task, todowrite, webfetch, write."},"output":"The arguments provided to the tool are invalid: Model tried to call unavailable tool ''view''. Available tools: bash, edit, glob, grep, invalid, read, skill, task, todowrite, webfetch, write.","metadata":{"truncated":false},"title":"Invalid Tool","time":{"start":1795078393516,"end":1795078393562}}}');
insert into part values ('prt_1f3028efa001fcq9k55fmMK5X3', 'msg_1f3028758001Il6hIoHGHOF2rM', 'ses_e0cfd8808ffeiS4PNt8SlQCgtJ', 1795078393595, 1795078393596, '{"reason":"tool-calls","type":"step-finish","tokens":{"total":55,"input":50,"output":5,"reasoning":0,"cache":{"write":0,"read":0}},"cost":0}');
insert into part values ('prt_1f3029a69001yj8u0QaM5MCqHu', 'msg_1f3028f230017AKeNhAv5FDVR0', 'ses_e0cfd8808ffeiS4PNt8SlQCgtJ', 1795078396521, 1795078396522, '{"type":"step-start"}');
insert into part values ('prt_1f3029a6c001wi6eu1fsrQizMq', 'msg_1f3028f230017AKeNhAv5FDVR0', 'ses_e0cfd8808ffeiS4PNt8SlQCgtJ', 1795078396524, 1795078396570, '{"type":"text","text":"wrong","time":{"start":1795078396524,"end":1795078396569}}');
insert into part values ('prt_1f3029aca00171x7qLITvITn8P', 'msg_1f3028f230017AKeNhAv5FDVR0', 'ses_e0cfd8808ffeiS4PNt8SlQCgtJ', 1795078396618, 1795078396619, '{"reason":"stop","type":"step-finish","tokens":{"total":55,"input":50,"output":5,"reasoning":0,"cache":{"write":0,"read":0}},"cost":0}');
