//! The contract suite of `Store`. It is here and not in `unspool-store`, because it writes through
//! the recorder. Tests that hold for every database are generic over `TestArchive` and instantiated
//! below for each; tests of SQLite itself (the file, the schema, damage by other programs) are
//! beside them. The suite also compares the recorder with a model in memory, and tests publishing
//! and the packing of payloads.
//!
//! `STORE_CASES` sets the number of random cases of each property.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

// The scripts of the assembler's tests, so that the archive is tested with the same events.
#[allow(dead_code, unused_imports)]
#[path = "../../../unspool-model/tests/fold/generators.rs"]
mod generators;
#[allow(dead_code, unused_imports)]
#[path = "../../../unspool-model/tests/fold/script.rs"]
mod script;
#[allow(dead_code, unused_imports)]
#[path = "../../../unspool-model/tests/fold/table.rs"]
mod table;

mod adoption;
mod batches;
mod bodies;
mod check;
mod edits;
mod fixtures;
mod harness;
mod maintenance;
mod messages;
mod model;
mod notes;
mod open;
mod operations;
mod ops;
mod payloads;
mod postgres;
mod postgres_server;
mod publish;
mod readers;
mod received;
mod recorder;
mod script_strategies;
mod search;
mod session_list;
mod stats;
mod test_archive;
mod views;

/// Instantiates the contract for one database. Another database is one more line at the end.
macro_rules! contract {
    ($name:ident, $test_archive:ty, $is_there:expr) => {
        contract! { @laws $name, $test_archive, $is_there;
            batches {
                a_batch_is_written_whole_or_not_at_all,
                a_recorder_goes_on_after_a_batch_that_failed,
                rows_are_numbered_on,
                files_are_remembered_with_how_far_they_were_read,
                a_turn_comes_back_with_its_rows,
                the_recorder_sees_what_it_has_sent,
                numbers_that_make_no_sense_are_kept,
                text_of_any_kind_is_kept,
            }
            session_list {
                sessions_are_listed_newest_first,
                every_filter_of_a_list_narrows_it,
                sessions_are_chosen_by_model_by_errors_and_by_whose_they_are,
                a_list_continues_after_a_position,
                a_session_by_itself_is_chosen_as_a_list_chooses_it,
                facet_counts_match_the_filtered_lists,
                a_session_is_found_by_what_people_call_it,
                the_session_that_is_meant_exactly_is_never_crowded_out,
                turns_come_in_windows,
                what_is_not_shown_is_kept,
            }
            edits {
                a_name_stands_before_every_title,
                tags_are_added_and_taken_away,
                deleting_a_session_leaves_nothing_of_it,
                what_was_deleted_does_not_come_back_by_itself,
                a_session_goes_with_its_sub_agents,
                sub_agents_that_name_each_other_are_no_trouble,
                a_session_that_is_forgotten_comes_back_as_it_was_called,
                contents_are_stored_once_and_go_with_the_last_who_needs_them,
                a_packer_outlives_what_it_stored,
                settings_are_kept,
                what_is_kept_beside_the_turns_comes_back,
            }
            notes {
                a_target_has_one_note,
                a_note_follows_its_turn_and_its_part,
                a_note_follows_its_part_to_another_turn,
                a_note_outlives_its_session_and_its_target,
            }
            search {
                words_are_found_where_they_were_said,
                a_word_inside_a_longer_one_is_found_where_no_whole_one_is,
                every_filter_of_a_search_narrows_it,
                titles_names_folders_and_branches_are_found,
                a_hit_says_where_it_is,
                a_part_is_one_hit_however_often_it_was_indexed,
                old_words_are_not_found_and_new_ones_are,
                parts_and_turns_that_turn_out_to_be_one_are_found_once,
                what_is_live_is_found_at_once,
                no_query_is_an_error,
                a_limited_search_reports_more_hits,
            }
            maintenance {
                tidying_changes_nothing_that_is_found,
                an_archive_is_recorded_into_after_tidying,
                an_empty_archive_can_be_tidied,
                numbers_of_rows_that_are_free_again_mix_nothing_up,
            }
            readers {
                readers_see_whole_commits,
                a_reader_reads_and_nothing_else,
            }
            messages {
                messages_of_fixtures_say_what_their_parts_say,
                messages_are_filtered,
                previews_are_cut_between_characters,
            }
            publish {
                whoever_follows_holds_what_is_stored,
                subscribers_receive_changes_from_their_subscription_on,
                who_falls_behind_loads_again,
                a_session_is_followed_through_restarts_of_its_recorder,
                a_failed_turn_is_followed_to_the_error_that_is_stored,
            }
            payloads {
                very_large_payloads_are_kept,
            }
            operations {
                whatever_people_do_is_what_is_there,
            }
            stats {
                figures_can_be_narrowed,
                what_fails_again_and_again_and_what_takes_long_is_named,
                calls_that_lead_to_failures_are_named,
            }
            views {
                a_session_is_read_by_its_id_and_by_nothing_else,
                sessions_are_read_together_in_the_order_of_the_ids,
                sessions_with_a_turn_without_an_end_are_found,
                a_view_sees_what_is_committed_after_it_was_made,
                an_error_has_a_kind_and_says_where,
            }
            adoption {
                a_session_that_was_kept_elsewhere_goes_on_here,
            }
            received {
                what_is_received_is_what_is_read_on_the_machine,
                a_unit_is_taken_once,
                a_file_that_was_replaced_is_received_again,
                a_session_has_one_owner,
                what_was_deleted_is_not_received_again,
                a_hostile_text_harms_nobody_else,
                pieces_of_any_size_are_joined_to_what_was_sent,
                what_its_sender_takes_back_leaves_nothing,
                nobody_adopts_the_session_of_another_member,
            }
            recorder {
                recorded_sessions_match_the_model,
                a_process_may_end_anywhere,
            }
        }
    };
    (@laws $name:ident, $test_archive:ty, $is_there:expr; $($module:ident { $($law:ident),* $(,)? })*) => {
        mod $name {
            $(mod $module {
                $(#[test]
                fn $law() {
                    if $is_there {
                        crate::$module::$law::<$test_archive>();
                    }
                })*
            })*
        }
    };
}

// Tests of SQLite only are in `check`, `messages` and `open`.
contract!(sqlite, crate::test_archive::SqliteTestArchive, true);
contract!(
    on_postgres,
    crate::test_archive::PostgresTestArchive,
    crate::postgres_server::is_there()
);
