//! The records that the messages of a turn begin with (R-001-24).

use super::{Assembler, Head};
use crate::session::MessageRecord;

impl Assembler {
    pub(super) fn name_record(
        &mut self,
        head: &Head,
        is_reply: bool,
        id: String,
        parent: Option<String>,
    ) {
        let turn = self.turn_for(head);
        let record = MessageRecord { at: head.at, id, parent };
        if self.turns[turn].origin.records.keep_first(is_reply, record) {
            self.emit_turn_origin(turn);
        }
    }
}
