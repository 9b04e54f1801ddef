//! Detects folders on network file systems. Other machines write there without causing events here,
//! and the processes that write are not in our list.

use std::path::Path;

/// True if another machine may write to the folder without causing events here.
#[cfg(target_os = "linux")]
pub fn is_remote(folder: &Path) -> bool {
    // As in statfs(2): NFS, SMB in its three forms, FUSE, 9P, AFS, Coda, Ceph, Lustre, NCP and the
    // shared folders of VirtualBox.
    const REMOTE: [u32; 13] = [
        0x6969,
        0x517B,
        0xFF53_4D42,
        0xFE53_4D42,
        0x6573_5546,
        0x0102_1997,
        0x5346_414F,
        0x6B41_4653,
        0x7375_7245,
        0x00C3_6400,
        0x0BD0_0BD0,
        0x564C,
        0x786F_4256,
    ];
    // The type is signed on some machines and unsigned on others; it has 32 bits everywhere.
    rustix::fs::statfs(folder).is_ok_and(|result| REMOTE.contains(&(result.f_type as u32)))
}

#[cfg(not(target_os = "linux"))]
pub fn is_remote(_: &Path) -> bool {
    false
}
