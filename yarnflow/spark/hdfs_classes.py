"""Classes by which Spark's JVMs reach HDFS, for archives that are made where there is none.

Nearly every job on a cluster keeps checkpoints on HDFS, and its client is over a thousand classes,
most of them messages of its protocol.  They are found by where they lie in Hadoop's client jars.
"""

from __future__ import annotations

import re
import zipfile
from pathlib import Path
from typing import Final

#: below ``org/apache/hadoop``; nested classes belong to those around them
_WANTED: Final = re.compile(
    r"org/apache/hadoop/("
    r"hdfs/protocol/proto/(ClientNamenodeProtocol|Hdfs|DataTransfer|ErasureCoding|Acl|EncryptionZones|XAttr"
    r"|Inotify)Protos"
    r"|security/proto/SecurityProtos"
    r"|ipc/protobuf/(RpcHeader|IpcConnectionContext|ProtobufRpcEngine2)Protos"
    r"|hdfs/protocol/[A-Z]\w*|hdfs/protocol/datatransfer/[A-Z]\w*|hdfs/protocolPB/(Client|PBHelperClient)\w*"
    r"|hdfs/(DFS|Distributed|Data|Hdfs|Client)\w*|hdfs/client/impl/\w*|hdfs/security/token/\w+/[A-Z]\w*"
    r"|io/retry/\w*|ipc/(Client|Call|Proto|RPC|Rpc|Retr|Remote|Response)\w*"
    r"|thirdparty/protobuf/\w*"
    r")(\$\w+)*\.class"
)


def hdfs_classes(jars: Path) -> list[str]:
    """Names of the classes of HDFS's client.

    Parameters
    ----------
    jars : Path
        Spark's directory of jars.
    """
    found: list[str] = []
    for jar in sorted(jars.glob("hadoop-client-*.jar")):
        with zipfile.ZipFile(jar) as archive:
            found += [name for name in archive.namelist() if _WANTED.fullmatch(name)]
    return sorted(name.removesuffix(".class").replace("/", ".") for name in found)
