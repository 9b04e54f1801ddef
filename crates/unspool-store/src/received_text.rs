//! What was received of a file of another machine, read like a file.

use std::io::{self, Read, Seek, SeekFrom};
use std::sync::Arc;

use crate::blocking::block_on;
use crate::rows::{ReceivedPiece, RowId};
use crate::store::{StoreError, View};

/// The text of a received file: the pieces in the archive, and behind them a text that is not
/// written yet. Holds one piece in memory.
#[derive(Clone)]
pub struct ReceivedText<V: View> {
    view: V,
    file: RowId,
    pieces: Arc<[ReceivedPiece]>,
    /// Where the stored text ends.
    stored: u64,
    new: Arc<[u8]>,
    position: u64,
    /// The piece that was read last: where it begins, and its text.
    held: Option<(u64, Arc<[u8]>)>,
}

impl<V: View> ReceivedText<V> {
    /// What is stored of a file, with a text that follows it.
    pub fn stored(view: V, file: RowId, new: Arc<[u8]>) -> Result<ReceivedText<V>, StoreError> {
        let pieces: Arc<[ReceivedPiece]> = block_on(view.received_pieces(file))?.into();
        let stored = pieces.last().map_or(0, |last| last.start + last.length);
        Ok(ReceivedText { view, file, pieces, stored, new, position: 0, held: None })
    }

    /// A text that takes the place of all that was received before.
    pub fn replaced(view: V, file: RowId, new: Arc<[u8]>) -> ReceivedText<V> {
        let pieces = Arc::default();
        ReceivedText { view, file, pieces, stored: 0, new, position: 0, held: None }
    }

    /// Where the text ends that is stored.
    pub fn stored_length(&self) -> u64 {
        self.stored
    }

    pub fn length(&self) -> u64 {
        self.stored + self.new.len() as u64
    }

    /// The piece at a position of the stored text.
    fn piece(&mut self, at: u64) -> io::Result<(u64, Arc<[u8]>)> {
        if let Some((start, text)) = &self.held
            && (*start..*start + text.len() as u64).contains(&at)
        {
            return Ok((*start, text.clone()));
        }
        let mut found = self.load(at)?;
        if found.is_none() {
            // A write has joined pieces meanwhile.
            self.pieces =
                block_on(self.view.received_pieces(self.file)).map_err(io::Error::other)?.into();
            found = self.load(at)?;
        }
        let missing = || io::Error::other("a piece of the received text is missing");
        let held = found.ok_or_else(missing)?;
        self.held = Some(held.clone());
        Ok(held)
    }

    fn load(&self, at: u64) -> io::Result<Option<(u64, Arc<[u8]>)>> {
        let found = self.pieces.partition_point(|piece| piece.start <= at);
        let piece = found.checked_sub(1).and_then(|found| self.pieces.get(found));
        let Some(piece) = piece.filter(|piece| at < piece.start + piece.length) else {
            return Ok(None);
        };
        let text = block_on(self.view.received_piece(self.file, piece.start));
        let text = text.map_err(io::Error::other)?;
        let whole = text.filter(|text| text.len() as u64 >= piece.length);
        Ok(whole.map(|text| (piece.start, text.into())))
    }
}

impl<V: View> Read for ReceivedText<V> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let (start, text) = match self.position {
            at if at >= self.stored => (self.stored, self.new.clone()),
            at => self.piece(at)?,
        };
        let at = usize::try_from(self.position - start).unwrap_or(usize::MAX);
        let rest = text.get(at..).unwrap_or_default();
        // A piece that was joined with later ones has more than was stored at the beginning.
        let left = match start < self.stored {
            true => usize::try_from(self.stored - self.position).unwrap_or(usize::MAX),
            false => usize::MAX,
        };
        let taken = rest.len().min(buffer.len()).min(left);
        buffer[..taken].copy_from_slice(&rest[..taken]);
        self.position += taken as u64;
        Ok(taken)
    }
}

impl<V: View> Seek for ReceivedText<V> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let target = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => self.length().checked_add_signed(by),
            SeekFrom::Current(by) => self.position.checked_add_signed(by),
        };
        self.position = target.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        Ok(self.position)
    }
}
